#!/usr/bin/env python3
"""Tests check_includes.py on small trees with and without omissions.

  check_includes_test.py SOURCE_DIR
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv[1]


class CheckIncludesTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "--quiet"], cwd=self.tree, check=True)

    def check(self, files, *arguments):
        """Exit code and report for a tree with these files."""
        for name, text in files.items():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text(text)
        subprocess.run(["git", "add", "."], cwd=self.tree, check=True)
        done = subprocess.run(
            [f"{SOURCE}/tests/check_includes.py", *arguments, str(self.tree)],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_an_omission_is_reported_with_its_place(self):
        code, said = self.check({
            "a.cc": "#include <string>\n\nstd::map<std::string, int> m;\n"
                    "std::map<int, int> n;\n",
            "b.cc": "bool f(int x) { return absl::c_any_of(v, g); }\n"})
        self.assertEqual(code, 1)
        self.assertEqual(said, "a.cc:3: std::map needs <map>\n"
                         "b.cc:1: absl::c_any_of needs "
                         '"absl/algorithm/container.h"\n')

    def test_a_file_that_includes_all_is_not_reported(self):
        self.assertEqual(self.check({
            "a.cc": '#include "a.h"\n\n#include <map>\n\n'
                    '#include "absl/strings/str_cat.h"\n\n'
                    "std::map<int, int> m;\nauto s = absl::StrCat(1);\n",
            "b.cc": "#include <string.h>\n\nint n = std::strlen(s);\n"}),
            (0, ""))

    def test_comments_and_strings_use_nothing(self):
        self.assertEqual(self.check({
            "a.cc": "// std::map\n/* std::set\n std::list */\n"
                    'auto s = "std::deque \\" std::span";\n'
                    'auto r = R"(std::regex " std::tuple)";\n'}), (0, ""))

    def test_a_source_has_what_its_own_header_includes(self):
        header = "#include <map>\n"
        source = '#include "part/a.h"\n\nstd::map<int, int> m;\n'
        self.assertEqual(
            self.check({"part/a.h": header, "part/a.cc": source}), (0, ""))
        self.assertEqual(
            self.check({"part/b.cc": source}),
            (1, "part/b.cc:3: std::map needs <map>\n"))

    def test_a_test_has_what_its_fixture_includes(self):
        header = "#include <map>\n"
        source = '#include "tests/part/fixture.h"\n\nstd::map<int, int> m;\n'
        self.assertEqual(
            self.check({"tests/part/fixture.h": header,
                        "tests/part/a_test.cc": source}), (0, ""))
        self.assertEqual(
            self.check({"tests/other/a_test.cc": source})[0], 1)

    def test_types_of_interfaces_may_come_through_any_header(self):
        self.assertEqual(
            self.check({"part/a.h": "#include <vector>\n",
                        "part/b.h": '#include "part/a.h"\n',
                        "c.cc": '#include "part/b.h"\n\n'
                                "std::vector<int> v;\n"}), (0, ""))
        self.assertEqual(
            self.check({"d.cc": "std::vector<int> v;\n"}),
            (1, "d.cc:1: std::vector needs <vector>\n"))

    def test_fix_inserts_what_is_missing(self):
        files = {"a.h": "#ifndef A_H_\n#define A_H_\n\nstd::span<int> s;\n",
                 "b.cc": '#include "b.h"\n\nstd::map<int, int> m;\n',
                 "c.cc": "// C.\nnamespace c {\nstd::deque<int> d;\n"}
        code, said = self.check(files, "--fix")
        self.assertEqual(code, 0)
        self.assertEqual(len(said.splitlines()), 3)
        self.assertEqual(self.check({}), (0, ""))
        self.assertEqual((self.tree / "b.cc").read_text(),
                         '#include "b.h"\n#include <map>\n\n'
                         "std::map<int, int> m;\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
