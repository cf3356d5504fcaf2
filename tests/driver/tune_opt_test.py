#!/usr/bin/env python3
"""tune-opt as a way to see what the compiler does.

  tests/driver/tune_opt_test.py TUNE_OPT
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TUNE_OPT = ""

PROGRAM = '''
@T.prim_func
def mm(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"),
       C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
'''

TRACE = '''b0 = sch.get_block("C", func_name="mm")
l1, l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l2, factors=[None, 16])
sch.vectorize(l5)
'''


class TuneOpt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        (folder / "mm.py").write_text(PROGRAM)
        (folder / "trace.py").write_text(TRACE)
        cls.cwd = folder

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_opt(self, *arguments, code=0):
        done = subprocess.run([TUNE_OPT, *arguments], cwd=self.cwd, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_every_stage_is_described_and_can_be_printed(self):
        lines = self.run_opt("--list-stages").splitlines()
        names = [line.split()[0] for line in lines]
        self.assertEqual(names[0], "parsed")
        self.assertEqual(names[-1], "asm")
        self.assertEqual(len(set(names)), len(names))
        for line in lines:
            self.assertGreater(len(line.split()), 3, line)
            name = line.split()[0]
            for target, stage_of in [("x86-64:znver4,cores=1", "(GPUs)"),
                                     ("sim:sm_90a", "(processors)")]:
                if target.startswith("sim") and name in ["asm", "llvm", "llvm-opt"]:
                    continue
                code = 1 if line.endswith(stage_of) else 0
                self.run_opt("mm.py", "--target", target, "--draw", "0",
                             "--stage", name, code=code)

    def test_steps_of_a_trace(self):
        def loops(steps):
            return self.run_opt("mm.py", "--trace", "trace.py", "--stage",
                                "scheduled", "--steps", str(steps))
        self.assertIn("for i, j, k in T.grid(32, 32, 32)", loops(0))
        self.assertEqual(loops(0), loops(2))
        self.assertIn("j_0, j_1", loops(3))
        self.assertNotIn("vectorized", loops(3))
        self.assertIn("T.vectorized(16)", loops(4))
        self.assertEqual(loops(4), self.run_opt("mm.py", "--trace", "trace.py",
                                                "--stage", "scheduled"))
        trace = self.run_opt("mm.py", "--trace", "trace.py", "--stage", "trace",
                             "--steps", "1")
        self.assertEqual(len(trace.splitlines()), 1)
        self.assertIn("4 instructions, fewer than 5",
                      self.run_opt("mm.py", "--trace", "trace.py", "--steps", "5",
                                   code=1))
        self.assertIn("there is no trace", self.run_opt("mm.py", "--steps", "1",
                                                        code=1))

    def test_differences_of_stages_and_steps(self):
        diff = self.run_opt("mm.py", "--trace", "trace.py", "--stage",
                            "vectorize", "--diff", "flat")
        self.assertTrue(diff.startswith("--- flat\n+++ vectorize\n@@ "), diff)
        self.assertRegex(diff, r"(?m)^-.*T\.vectorized\(16\)")
        self.assertRegex(diff, r"(?m)^\+.*T\.[Rr]amp|^\+.*:")
        diff = self.run_opt("mm.py", "--trace", "trace.py", "--stage",
                            "scheduled", "--diff", "3")
        self.assertTrue(diff.startswith("--- step 3\n+++ all steps\n"), diff)
        self.assertRegex(diff, r"(?m)^\+.*T\.vectorized\(16\)")
        diff = self.run_opt("mm.py", "--trace", "trace.py", "--stage",
                            "scheduled", "--diff", "0", "--steps", "2")
        self.assertEqual(diff, "")

    def test_the_default_schedule(self):
        trace = self.run_opt("mm.py", "--default", "--stage", "trace",
                             "--target", "x86-64:znver4,cores=1")
        self.assertIn("sch.vectorize(", trace)
        self.assertIn("T.vectorized(", self.run_opt(
            "mm.py", "--default", "--stage", "scheduled", "--target",
            "x86-64:znver4,cores=1"))

    def test_wrong_usage(self):
        self.assertIn("file is required", self.run_opt(code=2))
        self.assertIn("the nearest is 'vectorize'", self.run_opt(
            "mm.py", "--diff", "vectorise", code=2))
        self.assertIn("excludes", self.run_opt("mm.py", "--default", "--draw", "1",
                                               code=2))


if __name__ == "__main__":
    TUNE_OPT = sys.argv.pop(1)
    unittest.main()
