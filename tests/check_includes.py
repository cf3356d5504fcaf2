#!/usr/bin/env python3
"""Finds headers of std and Abseil that sources need, but do not include.

  tests/check_includes.py [--fix] [FOLDER]

Precompiled headers and unity builds hide a missing include from the compiler.
The header of a name in declared_names.txt must be included by the file itself,
by the header of the same name beside it or, for a test, by a header of its own
folder that it includes; headers with a mark, by any header that it includes.
Lexical: reads what git tracks in FOLDER, without comments and strings. --fix
inserts what is missing, for clang-format to sort.
"""
import argparse
import functools
import pathlib
import re
import subprocess
import sys

TABLE = pathlib.Path(__file__).with_name("declared_names.txt")
INCLUDE = re.compile(r'^ *# *include *[<"]([^>"]+)[>"]', re.MULTILINE)
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(\\.|[^"\\\n])*"'
                     r"|'(\\.|[^'\\\n])'", re.DOTALL)
USE = re.compile(r"\b(?:(std|absl)::((?:ranges::)?\w+)"
                 r"|()(u?int(?:8|16|32|64|ptr)_t)\b)")

# The table: a comment, then headers, each with the patterns of its names.
ENTRIES = [entry.split() for entry in re.split(
    r"\n(?! )", re.sub(r"(?m)^#.*\n", "", TABLE.read_text())) if entry]
DECLARED = [(header.rstrip("*"), re.compile("|".join(patterns)))
            for header, *patterns in ENTRIES]
HANDED_ON = {header[:-1] for header, *_ in ENTRIES if header.endswith("*")}


@functools.cache
def header_of(space, name):
    for header, pattern in DECLARED:
        in_absl = header.startswith("absl/")
        if in_absl == (space == "absl") and pattern.fullmatch(name):
            return header
    return None  # the table lacks the name


def headers_used(text):
    """The needed headers, each with the line and name of its first use."""
    code = NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    used = {}
    for number, line in enumerate(code.splitlines(), 1):
        for match in USE.finditer(line):
            space, name = match[1] or "std", match[2] or match[4]
            used.setdefault(header_of(space, name), (number, match[0]))
    used.pop(None, None)
    return used


def included(text):
    """The included headers; for <string.h>, also cstring."""
    headers = set(INCLUDE.findall(text))
    return headers | {"c" + header[:-2] for header in headers
                      if re.fullmatch(r"\w+\.h", header)}


def missing(name, text, includes):
    """Those of headers_used that the file lacks."""
    path = pathlib.PurePath(name)
    direct = set(includes[name])
    for header in includes[name]:
        is_fixture = (path.parts[0] == "tests"
                      and pathlib.PurePath(header).parent == path.parent)
        if is_fixture or header == str(path.with_suffix(".h")):
            direct |= includes.get(header, set())
    through, waiting = set(), [name]
    while waiting:
        new = includes.get(waiting.pop(), set()) - through
        through |= new
        waiting += new
    return {header: use for header, use in headers_used(text).items()
            if header not in direct | (through & HANDED_ON)}


def quoted(header):
    return f'"{header}"' if "/" in header else f"<{header}>"


def insert(path, headers):
    """Adds includes below the first one, or where the code starts."""
    lines = path.read_text().splitlines(keepends=True)
    at = next((i for pattern in (INCLUDE, re.compile("# *define|namespace"))
               for i, line in enumerate(lines) if pattern.match(line)), 0)
    at += lines[at].startswith("#")
    lines[at:at] = [f"#include {quoted(header)}\n" for header in headers]
    path.write_text("".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("folder", nargs="?", type=pathlib.Path,
                        default=TABLE.parent.parent)
    args = parser.parse_args()
    names = subprocess.run(["git", "ls-files", "*.h", "*.cc"], check=True,
                           cwd=args.folder, capture_output=True, text=True)
    texts = {name: (args.folder / name).read_text()
             for name in names.stdout.split() if (args.folder / name).exists()}
    includes = {name: included(text) for name, text in texts.items()}
    failed = False
    for name, text in texts.items():
        lacks = missing(name, text, includes)
        for header, (line, use) in lacks.items():
            print(f"{name}:{line}: {use} needs {quoted(header)}")
        if lacks and args.fix:
            insert(args.folder / name, lacks)
        failed = failed or bool(lacks)
    return 1 if failed and not args.fix else 0


if __name__ == "__main__":
    sys.exit(main())
