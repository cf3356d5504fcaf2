#!/usr/bin/env python3
"""Checks that documents name existing files, and decisions are complete and listed.

  documents_test.py SOURCE_DIR
"""
import glob
import os
import re
import sys
import unittest

ROOT = ""

# A path in code quotes: `worker/pipeline.h`, `../ir/padding.h`, `store.h`,
# `tests/fault/{a,b}_test`, `deploy/config/`. Parts of it may be wildcards.
QUOTED = re.compile(r"`(\w[\w.*{},/-]*|\.\./[\w.*{},/-]+)`")
# What is a path although it names no folder.
SOURCE = re.compile(r"\.(h|cc|c|py|md|proto|cmake)$")
LINK = re.compile(r"\]\(([^)#]+)\)")
# How a part of a decision begins: a heading, or words in bold.
PART = re.compile(r"^(?:#+ |\*\*)(?:what would )?"
                  r"(context|decision|consequence|reopen)s?\b", re.I | re.M)

TOPS = ["base", "cmake", "compiler", "cost_model", "database", "deploy",
        "docs", "examples", "proto", "server", "tests", "transport", "worker"]


def files():
    for entry in os.scandir(ROOT):
        if entry.is_file():
            yield entry.path
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                yield os.path.join(folder, name)


def documents():
    return sorted(path for path in files() if path.endswith(".md"))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def alternatives(text):
    """"a/{b,c}.h" -> "a/b.h", "a/c.h"."""
    match = re.search(r"\{([^{}]*)\}", text)
    if match is None:
        return [text]
    return [one for choice in match.group(1).split(",")
            for one in alternatives(
                text[:match.start()] + choice + text[match.end():])]


def is_path(text):
    return (text.split("/")[0] in TOPS + [".."] if "/" in text
            else SOURCE.search(text))


def missing_paths(document, names):
    """Paths are relative to the document or the root; a name may be anywhere.

    A path without an ending names a header and its source, or a test.
    """
    for quoted in QUOTED.findall(read(document)):
        for path in filter(is_path, alternatives(quoted)):
            found = path in names or any(
                glob.glob(os.path.join(folder, path + ending))
                for folder in (os.path.dirname(document), ROOT)
                for ending in ("", ".*"))
            if not found:
                yield path


class DocumentsTest(unittest.TestCase):

    def test_quoted_paths_exist(self):
        names = {os.path.basename(path) for path in files()}
        for document in documents():
            with self.subTest(os.path.relpath(document, ROOT)):
                self.assertEqual(list(missing_paths(document, names)), [])

    def test_links_lead_somewhere(self):
        for document in documents():
            for link in LINK.findall(read(document)):
                if "://" in link:
                    continue
                target = os.path.join(os.path.dirname(document), link)
                self.assertTrue(
                    os.path.exists(target),
                    f"{os.path.relpath(document, ROOT)} links to {link}")

    def test_decisions_are_complete_and_listed(self):
        folder = os.path.join(ROOT, "docs", "decisions")
        listed = set(re.findall(r"^- \[.*\]\(.*\)$", read(
            os.path.join(folder, "README.md")), re.MULTILINE))
        pages = {os.path.relpath(page, folder): read(page) for page in
                 glob.glob(os.path.join(folder, "*", "*.md"))}
        lines = {f"- [{text.splitlines()[0].removeprefix('# ')}]({name})"
                 for name, text in pages.items()}
        self.assertEqual(lines - listed, set(), "missing in the index")
        self.assertEqual(listed - lines, set(), "no such page, or title")
        for name, text in pages.items():
            self.assertEqual(
                [part.lower() for part in PART.findall(text)],
                ["context", "decision", "consequence", "reopen"], name)


if __name__ == "__main__":
    ROOT = os.path.realpath(sys.argv.pop(1))
    unittest.main()
