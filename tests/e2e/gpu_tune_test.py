#!/usr/bin/env python3
"""Tunes operators on GPUs that every machine has: OpenCL on the processor
(PoCL) and the simulator of an NVIDIA GPU, through server and workers. Every
trial must be verified; tunec builds the fastest for OpenCL, and the library's
result is compared here.

  tests/e2e/gpu_tune_test.py BIN
"""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import unittest

from served import SOURCE, Served

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
OPENCL, SIMULATOR = "opencl:pocl", "sim:sm_90a"
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


class GpuTune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.farm = Served(BIN)
        cls.farm.__enter__()
        for name, device in (("pocl", "opencl:0"), ("simulator", SIMULATOR)):
            cls.farm.start(
                "rpc-worker", name, "--server", cls.farm.address, "--name",
                name, "--device", device, "--state-dir",
                str(cls.farm.folder / f"{name}-state"))

    @classmethod
    def tearDownClass(cls):
        cls.farm.__exit__()

    def tune(self, name, target):
        file = self.farm.folder / f"{name}.py"
        file.write_text(PROGRAMS[name])
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
        for name in PROGRAMS:
            with self.subTest(name):
                self.tune(name, SIMULATOR)

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


if __name__ == "__main__":
    os.environ["POCL_DEVICES"] = "basic"
    unittest.main(verbosity=2)
