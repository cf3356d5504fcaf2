#!/usr/bin/env python3
"""Tests must_not_skip.py with a GoogleTest program and with files of ctest.

  must_not_skip_test.py SOURCE_DIR SKIPPING_PROGRAM
"""
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE, PROGRAM = sys.argv[1], sys.argv[2]
CTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="2" failures="0" disabled="0" skipped="1">
  <testcase name="runs" classname="runs" time="1" status="run"/>
  <testcase name="skips" classname="skips" time="0" status="notrun">
    <skipped message="SKIP_RETURN_CODE=77"/>
  </testcase>
</testsuite>
"""


class MustNotSkipTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.results = os.path.join(self.folder.name, "results")
        subprocess.run(
            [PROGRAM], check=True, stdout=subprocess.DEVNULL,
            env={**os.environ, "GTEST_OUTPUT": f"xml:{self.results}/"})
        with open(os.path.join(self.results, "ctest.xml"), "w",
                  encoding="utf-8") as file:
            file.write(CTEST)

    def tearDown(self):
        self.folder.cleanup()

    def check(self, text):
        """Exit code and what is said of a list with this text."""
        tests = os.path.join(self.folder.name, "checkout", "tests")
        os.makedirs(tests, exist_ok=True)
        path = os.path.join(tests, "list.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(
            [os.path.join(SOURCE, "tests", "must_not_skip.py"), self.results,
             path], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_what_ran_is_well(self):
        code, said = self.check("# a comment\n\nSkipping.Runs\nruns\n")
        self.assertEqual(code, 0, said)
        self.assertIn("2 patterns", said)

    def test_a_skipped_case_is_named_with_its_reason(self):
        code, said = self.check("Skipping.*\n")
        self.assertEqual(code, 1)
        self.assertIn("Skipping.Skips was skipped: no such machine", said)
        self.assertNotIn("Skipping.Runs", said)

    def test_a_suite_that_skips_in_its_setup_is_found(self):
        code, said = self.check("SkippingFixture.*\n")
        self.assertEqual(code, 1)
        self.assertIn("SkippingFixture.Case was skipped: nothing here", said)

    def test_a_disabled_case_has_not_run(self):
        code, said = self.check("Skipping.DISABLED_Case\n")
        self.assertEqual(code, 1)
        self.assertIn("it is disabled", said)

    def test_a_skipped_ctest_is_found(self):
        code, said = self.check("skips\n")
        self.assertEqual(code, 1)
        self.assertIn("skips was skipped: SKIP_RETURN_CODE=77", said)

    def test_a_name_that_nothing_has_is_a_fault(self):
        code, said = self.check("Skipping.Runs\nGone.*\n")
        self.assertEqual(code, 1)
        self.assertIn("Gone.*: no test of this name has run", said)

    def test_sections_count_where_their_path_exists(self):
        self.assertEqual(
            self.check("[where ../nothing exists]\nSkipping.Skips\n")[0], 0)
        self.assertEqual(
            self.check("[where ../results exists]\nSkipping.Skips\n")[0], 1)
        self.assertEqual(self.check("[on tuesdays]\nSkipping.Runs\n")[0], 2)

    def test_results_that_are_not_there_are_no_success(self):
        self.results += "-elsewhere"
        self.assertEqual(self.check("")[0], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
