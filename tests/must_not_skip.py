#!/usr/bin/env python3
"""Fails if a test that must run was skipped or did not run.

  must_not_skip.py RESULTS LIST

RESULTS is a folder of JUnit files: those of GoogleTest programs
(GTEST_OUTPUT=xml:RESULTS/) and, as RESULTS/ctest.xml, that of ctest. LIST is
tests/must_not_skip.txt, which describes its format. Exit code 1 if a test is
missing or was skipped, 2 if RESULTS or LIST cannot be read.
"""
import fnmatch
import os
import re
import sys
import xml.etree.ElementTree

# What no XML document may have, as a character or a reference to one.
INVALID = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|"
                     "&#x(?:[0-8BCEF]|1[0-9A-F]);", re.IGNORECASE)
SECTION = re.compile(r"\[where (\S+) exists\]$")


def read_list(path):
    """The patterns that count here."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(path)))
    patterns, counts = [], True
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            section = SECTION.match(line)
            if section:
                counts = os.path.exists(os.path.join(root, section[1]))
            elif line.startswith("["):
                raise ValueError(f"{path}:{number}: no such section: {line}")
            elif counts and line and not line.startswith("#"):
                patterns.append(line)
    return patterns


def read_results(folder):
    """Name of each test: why it was skipped, or None where it ran."""
    results = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".xml"):
            continue
        # GoogleTest writes the parameters of tests as they are, whatever bytes
        # those are.
        with open(os.path.join(folder, name), encoding="utf-8",
                  errors="replace") as file:
            tree = xml.etree.ElementTree.fromstring(
                INVALID.sub("?", file.read()))
        for case in tree.iter("testcase"):
            test = case.get("name")
            if name != "ctest.xml":
                test = f"{case.get('classname')}.{test}"
            skipped = case.find("skipped")
            ran = case.get("status") in ("run", "fail")
            if skipped is not None:
                results[test] = skipped.get("message") or "skipped"
            elif not ran or case.get("result") == "suppressed":
                results[test] = "it is disabled"
            else:
                results[test] = None
    return results


def problems(patterns, results):
    for pattern in patterns:
        names = fnmatch.filter(results, pattern)
        if not names:
            yield f"{pattern}: no test of this name has run"
        for name in names:
            if results[name] is not None:
                why = results[name].strip().splitlines()[-1]
                yield f"{name} was skipped: {why}"


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        patterns = read_list(arguments[1])
        results = read_results(arguments[0])
    except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
        print(f"must_not_skip: {error}", file=sys.stderr)
        return 2
    found = list(problems(patterns, results))
    for problem in found:
        print(f"must_not_skip: {problem}", file=sys.stderr)
    if found:
        return 1
    print(f"must_not_skip: {len(patterns)} patterns, nothing was skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
