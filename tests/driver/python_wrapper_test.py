#!/usr/bin/env python3
"""Functions called by examples/python/tilefarm_kernel.py.

  tests/driver/python_wrapper_test.py TUNEC
"""
import array
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "python"))
import tilefarm_kernel  # noqa: E402

TUNEC = ""

PROGRAM = '''
@T.prim_func
def scale(A: T.Buffer((3, 4), "float32"), n: T.Buffer((1,), "int64"),
          B: T.Buffer((3, 4), "float32")):
    for i, j in T.grid(3, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.cast(n[0], "float32")


@T.prim_func
def strided(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (2, 3), "int8", strides=[5, 1], elem_offset=2)
    B = T.match_buffer(b, (2, 3), "int8")
    for i, j in T.grid(2, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


@T.prim_func
def dense(X: T.Buffer((8, 16), "float32"), W: T.Buffer((16, 16), "float32"),
          Y: T.Buffer((8, 16), "float32")):
    T.func_attr({"layout_free_buffers": [1]})
    for i, j, k in T.grid(8, 16, 16):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]
'''

# Packs W in panels of four columns.
TRACE = '''
b0 = sch.get_block("Y", func_name="dense")
b1 = sch.cache_read(b0, 1, "global")
sch.annotate(b1, ann_key="tilefarm.prepack", ann_val=1)
sch.transform_layout(b1, buffer=("write", 0), index_map="lambda i, j: (j // 4, i, j % 4)")
'''


def floats(values):
    return array.array("f", values)


class Wrapper(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        (folder / "p.py").write_text(PROGRAM)
        (folder / "trace.py").write_text(TRACE)
        cls.library = str(folder / "p.so")
        subprocess.run([TUNEC, folder / "p.py", "--target", "host,cores=2",
                        "--trace", folder / "trace.py", "-o", cls.library],
                       check=True, stderr=subprocess.DEVNULL)
        cls.scale = tilefarm_kernel.Function(cls.library, "scale")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_describes_itself(self):
        text = str(self.scale)
        self.assertIn("scale for ", text)
        self.assertIn("0: A, float32 [3, 4], row-major, 48 bytes\n", text)
        self.assertIn("1: n, int64 [1], row-major, 8 bytes\n", text)
        self.assertIn("2: B, float32 [3, 4], row-major, 48 bytes, written", text)
        self.assertGreaterEqual(self.scale.threads, 1)

    def test_computes(self):
        b = floats([0] * 12)
        self.scale(floats(range(12)), array.array("q", [3]), b)
        self.assertEqual(list(b), [3 * i for i in range(12)])
        # Any object with a buffer: read-only inputs, shaped views, raw bytes.
        c = memoryview(bytearray(48)).cast("f", (3, 4))
        self.scale(bytes(floats(range(12))), array.array("l", [2]), c)
        self.assertEqual(c[2, 3], 22)
        self.scale(c, array.array("q", [2]), self.scale.empty(2))

    def test_wrong_arguments_are_refused_before_the_call(self):
        a, n, b = floats(range(12)), array.array("q", [3]), floats([0] * 12)
        wrong = [
            (TypeError, "has 3 parameters, not 2", (a, n)),
            (TypeError, "list has no buffer", ([0] * 12, n, b)),
            (TypeError, "format 'd', not 'f'", (array.array("d", a), n, b)),
            (TypeError, "format 'i', not 'q'", (a, array.array("i", [1]), b)),
            (ValueError, "44 bytes, not 48", (a[:11], n, b)),
            (ValueError, r"has shape \(4, 3\)",
             (memoryview(bytearray(48)).cast("f", (4, 3)), n, b)),
            (ValueError, "not contiguous", (memoryview(floats([0] * 24))[::2], n, b)),
            (ValueError, "read-only", (a, n, bytes(48))),
            (ValueError, "not aligned",
             (memoryview(bytearray(56))[1:49], n, b)),
            (ValueError, "A and B overlap|B and A overlap", (b, n, b))]
        for kind, message, arguments in wrong:
            with self.assertRaisesRegex(kind, message):
                self.scale(*arguments)
        self.assertEqual(list(b), [0] * 12)

    def test_strides_and_offset(self):
        strided = tilefarm_kernel.Function(self.library, "strided")
        self.assertEqual(strided.parameters[0].strides, (5, 1))
        self.assertEqual(strided.parameters[0].bytes, 2 + 5 + 3)
        b = array.array("b", [0] * 6)
        strided(array.array("b", range(10)), b)
        self.assertEqual(list(b), [2, 3, 4, 7, 8, 9])

    def test_packed_constants(self):
        dense = tilefarm_kernel.Function(self.library, "dense")
        x, w = floats(range(128)), floats([i % 7 for i in range(256)])
        y, z = floats([0] * 128), floats([0] * 128)
        dense(x, w, y)
        self.assertGreater(dense.parameters[1].packed_bytes, 0)
        dense.packed(x, dense.pack(1, w), z)
        self.assertEqual(list(y), list(z))
        self.assertEqual(y[16], sum(x[16 + k] * w[16 * k] for k in range(16)))
        with self.assertRaisesRegex(ValueError, "no packed form"):
            dense.pack(0, x)
        with self.assertRaisesRegex(ValueError, "no packed form"):
            self.scale.packed(x, w, y)

    def test_missing_functions_and_files(self):
        with self.assertRaisesRegex(ValueError, "has no function nothing"):
            tilefarm_kernel.Function(self.library, "nothing")
        with self.assertRaises(OSError):
            tilefarm_kernel.Function(os.path.join(self.folder.name, "no.so"), "f")

    @unittest.skipIf(tilefarm_kernel.numpy is None, "NumPy is not installed")
    def test_numpy(self):
        numpy = tilefarm_kernel.numpy
        a = numpy.arange(12, dtype="float32").reshape(3, 4)
        b = self.scale.empty(2)
        self.assertEqual(b.shape, (3, 4))
        self.scale(a, numpy.array([5], "int64"), b)
        self.assertTrue((b == 5 * a).all())
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            self.scale(a.reshape(4, 3).T, numpy.array([5], "int64"), b)


if __name__ == "__main__":
    TUNEC = sys.argv.pop(1)
    unittest.main()
