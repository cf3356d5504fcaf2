#!/usr/bin/env python3
"""deploy/quickstart with programs that are built already.

  tests/e2e/quickstart_test.py BIN
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ""


def quickstart(home, *arguments):
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home,
                   "TILEFARM_BIN": BIN, "TILEFARM_HOME": home,
                   "QUICKSTART_TRIALS": "4"}
    return subprocess.run([ROOT / "deploy" / "quickstart", *arguments], cwd=home,
                          env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=240, check=False)


def tune(*arguments, server=""):
    return subprocess.run([os.path.join(BIN, "tune"), *arguments], text=True,
                          env={**os.environ, "TUNE_SERVER": server},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)


class Quickstart(unittest.TestCase):
    def test_tunes_and_leaves_a_server_if_asked_to(self):
        with tempfile.TemporaryDirectory() as home:
            first = quickstart(home)
            self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
            for program in ["matmul_512", "mm_relu", "conv2d_3x3"]:
                self.assertRegex(first.stdout, rf"(?m)^{program} .* [mu]s .* yes$")
            # Everything has ended: the database may be written.
            database = os.path.join(home, "tune.db")
            self.assertIn(f"tune-server --db {database}", first.stdout)
            stats = tune("db", "prune", "--db", database, "--keep", "1000")
            self.assertEqual(stats.returncode, 0, stats.stderr)

            kept = quickstart(home, "--keep")
            pids = re.search(r"(?m)^  kill (\d+) (\d+) ", kept.stdout)
            self.assertIsNotNone(pids, kept.stdout + kept.stderr)
            try:
                server = re.search(r"TUNE_SERVER=(\S+)", kept.stdout)[1]
                jobs = tune("jobs", server=server)
                self.assertEqual(jobs.returncode, 0, jobs.stderr)
                self.assertEqual(len(jobs.stdout.splitlines()), 7, jobs.stdout)
                again = quickstart(home)
                self.assertEqual(again.returncode, 1)
                self.assertIn("written by another process", again.stderr)
            finally:
                for pid in pids.groups():
                    os.kill(int(pid), signal.SIGTERM)

    def test_wrong_options(self):
        with tempfile.TemporaryDirectory() as home:
            done = quickstart(home, "--help")
            self.assertEqual(done.returncode, 2)
            self.assertIn("there is --keep", done.stderr)


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
