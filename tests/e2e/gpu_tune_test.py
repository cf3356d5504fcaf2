#!/usr/bin/env python3
"""Tunes operators on GPUs that every machine has: OpenCL on the processor
(PoCL), the simulator of an NVIDIA GPU, and CUDA with a driver that executes PTX
(tests/gpu/fake_cuda.h), through server and workers. Every trial must be
verified; tunec builds the fastest for OpenCL, and the library's result is
compared here. A model is tuned on all of them, and its library compared with
one for the host.

  tests/e2e/gpu_tune_test.py BIN RANDOM_MODELS CUDA_DRIVER
"""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import unittest

from served import SOURCE, Served

sys.path.insert(0, str(SOURCE / "tests" / "perf"))
import gpu_programs  # noqa: E402

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
RANDOM_MODELS = pathlib.Path(sys.argv.pop(1)).resolve()
CUDA_DRIVER = pathlib.Path(sys.argv.pop(1)).resolve()
OPENCL, SIMULATOR, CUDA = "opencl:pocl", "sim:sm_90a", "cuda:sm_90a"
TRIALS = 5
SIZE = 500  # of row_sums, rows and columns

def program(path, *smaller):
    """One of the project's programs, with shorter loops."""
    text = (SOURCE / path).read_text()
    for old, new in smaller:
        text = text.replace(old, new)
    return text


PROGRAMS = {
    "matmul": program("examples/mm_relu.py", ("128", "64")),
    "conv2d": program("examples/conv2d_3x3.py", ("64", "8"), ("56", "14"),
                      ("57", "15"), ("58", "16")),
    "softmax": program("tests/perf/programs/softmax_4608x8192.py",
                       ("4608", "32"), ("8192", "256")),
    "layer_norm": program("examples/layer_norm.py", ("128", "16"),
                          ("768", "192")),
    "row_sums": program("tests/perf/programs/row_sums_4096.py",
                        ("4096", str(SIZE))),
    "attention": program("examples/attention.py", ("256", "48")),
}
# Whose default schedule is one kernel on tensor cores.
HALF_ATTENTION = gpu_programs.attention(2, 64, 32, "float16")


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64))]


def run_model(library):
    """The outputs, all of float32, for inputs that are the same each time."""
    code = ctypes.CDLL(str(library))
    code.model_input.restype = code.model_output.restype = \
        ctypes.POINTER(TensorInfo)
    code.model_error.restype = ctypes.c_char_p
    model = ctypes.c_void_p()
    if code.model_create(None, ctypes.byref(model)):
        raise AssertionError(code.model_error().decode())

    def tensors(count, describe):
        made = []
        for number in range(count):
            info = describe(number).contents
            size = 1
            for d in range(info.rank):
                size *= info.shape[d]
            made.append((ctypes.c_float * size)(
                *(i % 17 / 8 - 1 for i in range(size))))
        return made, (ctypes.c_void_p * count)(
            *(ctypes.addressof(one) for one in made))

    _, given = tensors(code.model_inputs(), code.model_input)
    results, places = tensors(code.model_outputs(), code.model_output)
    for _ in range(2):
        if code.model_run(model, given, places):
            raise AssertionError(code.model_error().decode())
    code.model_destroy(model)
    return [list(result) for result in results]


class GpuTune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.farm = Served(BIN)
        cls.farm.__enter__()
        for name, device in (("pocl", "opencl:0"), ("simulator", SIMULATOR),
                             ("cuda", "cuda:0")):
            cls.farm.start(
                "rpc-worker", name, "--server", cls.farm.address, "--name",
                name, "--device", device, "--state-dir",
                str(cls.farm.folder / f"{name}-state"))

    @classmethod
    def tearDownClass(cls):
        cls.farm.__exit__()

    def tune(self, name, target):
        file = self.farm.folder / f"{name}.py"
        file.write_text(PROGRAMS.get(name, HALF_ATTENTION))
        done = subprocess.run(
            [BIN / "tune", "run", file, "--target", target, "--trials",
             str(TRIALS), "--server", self.farm.address],
            capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"done, {TRIALS}/{TRIALS} trials", done.stdout)
        # What became of the trials: none is wrong, or fails.
        counts = re.findall(r"\| (ok .*?) \| devices", done.stderr)
        self.assertTrue(counts, done.stderr)
        self.assertEqual(counts[-1], f"ok {TRIALS}", done.stderr)
        return file

    def test_opencl(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.tune(name, OPENCL)

    def test_simulator(self):
        for name in [*PROGRAMS, "half_attention"]:
            with self.subTest(name):
                self.tune(name, SIMULATOR)

    def test_cuda(self):
        for name in [*PROGRAMS, "half_attention"]:
            with self.subTest(name):
                self.tune(name, CUDA)

    def test_tuned_library(self):
        file = self.tune("row_sums", OPENCL)
        library = self.farm.folder / "row_sums.so"
        made = subprocess.run(
            [BIN / "tunec", file, "--target", OPENCL, "--server",
             self.farm.address, "-o", library], capture_output=True, text=True,
            check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertNotIn("default schedule", made.stderr)
        code = ctypes.CDLL(str(library))
        given = (ctypes.c_float * (SIZE * SIZE))(*(
            float(i % 7 - i // SIZE % 50) for i in range(SIZE * SIZE)))
        sums = (ctypes.c_float * SIZE)()
        code.row_sums_error.restype = ctypes.c_char_p
        self.assertEqual(code.row_sums(given, sums), 0, code.row_sums_error())
        for row in range(SIZE):
            want = sum(given[row * SIZE:(row + 1) * SIZE])
            self.assertAlmostEqual(sums[row], want, delta=1e-3 * SIZE)

    def test_model(self):
        model = self.farm.folder / "model.onnx"
        subprocess.run([RANDOM_MODELS, "--seed", "2", "--write", model],
                       check=True)

        def build(target, *options):
            library = self.farm.folder / f"model-{target.split(':')[0]}.so"
            made = subprocess.run(
                [BIN / "tunec", model, "--target", target, "-o", library,
                 *options], capture_output=True, text=True, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)
            return library

        expected = run_model(build("host,cores=1"))
        for target in (OPENCL, SIMULATOR, CUDA):
            with self.subTest(target):
                done = subprocess.run(
                    [BIN / "tune", "run", model, "--target", target,
                     "--trials", "30", "--server", self.farm.address],
                    capture_output=True, text=True, check=False, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
                counts = re.findall(r"\| (ok .*?) \| devices", done.stderr)
                self.assertRegex(counts[-1], r"^ok \d+$")
                options = ["--server", self.farm.address]
                if target == SIMULATOR:
                    # Its times are nobody's best.
                    options.append("--allow-emulated")
                actual = run_model(build(target, *options))
                for one, other in zip(expected, actual, strict=True):
                    for a, b in zip(one, other, strict=True):
                        self.assertAlmostEqual(a, b, delta=1e-3 + 1e-3 * abs(a))


if __name__ == "__main__":
    os.environ["POCL_DEVICES"] = "basic"
    os.environ["TILEFARM_CUDA_DRIVER"] = str(CUDA_DRIVER)
    # The driver executes PTX, and no machine code.
    os.environ["TILEFARM_PTXAS"] = os.environ["TILEFARM_NVJITLINK"] = ""
    unittest.main(verbosity=2)
