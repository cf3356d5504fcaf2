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

HEAD = "from tvm.script import tir as T\n\n\n@T.prim_func\n"

SOFTMAX = HEAD + '''def softmax(X: T.Buffer((32, 256), "float32"),
            Y: T.Buffer((32, 256), "float32")):
    M = T.alloc_buffer((32,), "float32")
    E = T.alloc_buffer((32, 256), "float32")
    S = T.alloc_buffer((32,), "float32")
    for i, k in T.grid(32, 256):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-3.4e38)
            M[vi] = T.max(M[vi], X[vi, vk])
    for i, j in T.grid(32, 256):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(X[vi, vj] - M[vi])
    for i, k in T.grid(32, 256):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, j in T.grid(32, 256):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = E[vi, vj] / S[vi]
'''

ROW_SUMS = HEAD + '''def row_sums(X: T.Buffer((48, 500), "float32"),
             Y: T.Buffer((48,), "float32")):
    for i, k in T.grid(48, 500):
        with T.block("Y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + X[vi, vk]
'''

CONV = HEAD + '''def conv2d(X: T.Buffer((1, 8, 14, 14), "float32"),
           W: T.Buffer((16, 8, 3, 3), "float32"),
           Y: T.Buffer((1, 16, 14, 14), "float32")):
    P = T.alloc_buffer((1, 8, 16, 16), "float32")
    for n, c, h, w in T.grid(1, 8, 16, 16):
        with T.block("P"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            P[vn, vc, vh, vw] = T.if_then_else(
                1 <= vh and vh < 15 and 1 <= vw and vw < 15,
                X[vn, vc, vh - 1, vw - 1], T.float32(0))
    for n, o, h, w, c, r, s in T.grid(1, 16, 14, 14, 8, 3, 3):
        with T.block("Y"):
            vn, vo, vh, vw, vc, vr, vs = T.axis.remap(
                "SSSSRRR", [n, o, h, w, c, r, s])
            with T.init():
                Y[vn, vo, vh, vw] = T.float32(0)
            Y[vn, vo, vh, vw] = (Y[vn, vo, vh, vw]
                                 + P[vn, vc, vh + vr, vw + vs]
                                 * W[vo, vc, vr, vs])
'''


def example(name, *smaller):
    text = (SOURCE / "examples" / name).read_text()
    for old, new in smaller:
        text = text.replace(old, new)
    return text


PROGRAMS = {
    "matmul": example("mm_relu.py", ("128", "64")),
    "conv2d": CONV,
    "softmax": SOFTMAX,
    "layer_norm": example("layer_norm.py", ("128", "16"), ("768", "192")),
    "row_sums": ROW_SUMS,
    "attention": example("attention.py", ("256", "48")),
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
        given = (ctypes.c_float * (48 * 500))(*(
            float(i % 7 - i // 500) for i in range(48 * 500)))
        sums = (ctypes.c_float * 48)()
        code.row_sums_error.restype = ctypes.c_char_p
        self.assertEqual(code.row_sums(given, sums), 0, code.row_sums_error())
        for row in range(48):
            want = sum(given[row * 500:(row + 1) * 500])
            self.assertAlmostEqual(sums[row], want, delta=1e-3 * 500)


if __name__ == "__main__":
    os.environ["POCL_DEVICES"] = "basic"
    unittest.main(verbosity=2)
