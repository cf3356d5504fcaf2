#!/usr/bin/env python3
"""Puts deliberate faults into the compiler and counts how many the tests detect.

    tests/property/seeded_faults.py [--build DIR] [--seconds S] [--only NAME ...]

Each fault is one edit of one source. For each, a copy of the tree is edited and
built, and differential_test and program_fuzz run on it until one of them fails;
program_fuzz starts no new programs after S seconds. Then the source is restored.
Ends with a table of the faults and of the tests that detected them; the exit code
is 1 if more than one was missed. Takes one to three minutes per fault on two
cores, and needs a built tree (the copy shares ccache's results).
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Name, source, what stands there once, and what stands there with the fault.
FAULTS = [
    ("split-predicate", "compiler/schedule/split.cc",
     "PredicateAdder(LT(value, ir::IntConst(extent)))",
     "PredicateAdder(LE(value, ir::IntConst(extent)))"),
    ("fuse-modulus", "compiler/schedule/fuse.cc",
     "FloorMod(value, ir::IntConst(lower * extents[i]))",
     "FloorMod(value, ir::IntConst(extents[i]))"),
    ("reorder-any-update", "compiler/schedule/reorder.cc",
     "const bool commutes = UpdatesCommute(*block);",
     "const bool commutes = UpdatesCommute(*block) || block != nullptr;"),
    ("reorder-repeated-reduction", "compiler/schedule/reorder.cc",
     "const bool repeats = !RunsAtMostOnce(state, *block, loops);",
     "const bool repeats =\n"
     "      !RunsAtMostOnce(state, *block, loops) && before.empty();"),
    ("reorder-repeated-below", "compiler/schedule/reorder.cc",
     "const bool repeats = !RunsAtMostOnce(state, *block, loops);",
     "const bool repeats = !RunsAtMostOnce(state, *block, before);"),
    ("reorder-overwrites", "compiler/schedule/reorder.cc",
     "if (!WritesAreDistinct(*block)) {",
     "if (block == nullptr) {"),
    ("decompose-other-blocks", "compiler/schedule/decompose_reduction.cc",
     "return CheckOtherAccesses(state, block, loop);",
     "return loop == nullptr ? CheckOtherAccesses(state, block, loop)\n"
     "                         : absl::OkStatus();"),
    ("blockize-init", "compiler/schedule/blockize.cc",
     "  if (block.init != nullptr) {\n    TF_RETURN_IF_ERROR(",
     "  if (nest.loops.empty()) {\n    TF_RETURN_IF_ERROR("),
    ("reverse-compute-at-cover", "compiler/schedule/compute_at.cc",
     "      if (!covered) {",
     "      if (!covered && moved == nullptr) {"),
    ("compute-at-outputs", "compiler/schedule/compute_at.cc",
     "  if (!reverse && IsOutput(state, move.block.get())) {",
     "  if (!reverse && move.block == nullptr) {"),
    ("inline-steps", "compiler/schedule/inline.cc",
     "if (!analyzer.ProveEqual(element, reached)) {",
     "if (element == nullptr) {"),
    ("cache-write-partial", "compiler/schedule/cache.cc",
     "      !WritesAll(state, *block, write)) {",
     "      block == nullptr) {"),
    ("cache-write-later-readers", "compiler/schedule/cache_block.cc",
     "if (behind || !SharedLoops(state, block.get(), writer.get()).empty()) {",
     "if (behind || SharedLoops(state, block.get(), writer.get()).size() > 99) {"),
    ("reindex-partial", "compiler/schedule/reindex.cc",
     "if (!WritesAll(state, *block, write)) {",
     "if (write.buffer == nullptr) {"),
    ("concurrent-blocks", "compiler/schedule/independence.cc",
     "AreApart(state, loops, *dep.src, *earlier, *dep.dst, access) ||",
     "loops.size() == 1 ||\n"
     "          AreApart(state, loops, *dep.src, *earlier, *dep.dst, access) ||"),
    ("compute-at-instances", "compiler/schedule/compute_at.cc",
     "  if (whole) return block;",
     "  if (whole || !loops.empty()) return block;"),
    ("parallel-privacy", "compiler/schedule/independence.cc",
     "(!written || !IsRegionCovered(state, block.get(), buffer))) {",
     "block == nullptr) {"),
    ("parallel-reduction", "compiler/schedule/for_kind.cc",
     "      if (iter.type == ir::IterType::kSpatial ||\n"
     "          (over_threads &&",
     "      if (iter.type != ir::IterType::kOpaque ||\n"
     "          (over_threads &&"),
    ("init-own-elements", "compiler/lower/lower_init.cc",
     "!AccessesOnly(block.body, *store)) {",
     "(!AccessesOnly(block.body, *store) && block.body == nullptr)) {"),
    ("init-inputs", "compiler/lower/lower_init.cc",
     "if (ReadsWhatIsWritten(block.init, loops[first]->body)) return false;",
     "if (loops.empty() &&\n"
     "          ReadsWhatIsWritten(block.init, loops[first]->body)) {\n"
     "        return false;\n      }"),
    ("allocation-gaps", "compiler/lower/place_allocations.cc",
     "if (auto filled = FilledBox(math, access, depth)) {\n"
     "            written.push_back(*std::move(filled));",
     "if (FilledBox(math, access, depth) || depth + 1 > 0) {\n"
     "            written.push_back(*box);"),
    ("allocation-once", "compiler/lower/allocation_regions.h",
     "(once_from == 0 || once_from - 1 > depth)",
     "(once_from == 0 || depth + 1 > 0)"),
    ("data-quotient", "compiler/arith/canonical.cc",
     "if (b.base > 1 && !IsAtom(a) && MayWrap(node.a)) {",
     "if (b.base < 1 && !IsAtom(a) && MayWrap(node.a)) {"),
    ("loaded-index", "compiler/schedule/compute_at.cc",
     "found = !IsInside(analyzer, *load);",
     "found = !IsInside(analyzer, *load) && load->indices.empty();"),
    ("allocation-hull", "compiler/lower/place_allocations.cc",
     "const int64_t low = std::min<int64_t>(0, *shift);",
     "const int64_t low = std::max<int64_t>(0, *shift);"),
    ("compare-by-one", "compiler/arith/simplify.cc",
     "      if (NonNegative(minus(diff, -1))) return ir::BoolConst(true);\n"
     "      if (NonNegative(diff)) return ir::BoolConst(false);",
     "      if (NonNegative(minus(diff, 0))) return ir::BoolConst(true);\n"
     "      if (NonNegative(diff)) return ir::BoolConst(false);"),
    ("guarded-loop-too-long", "compiler/lower/partition_guards.cc",
     "ir::FloorDiv(limit.ToExpr(), ir::IntConst(scale)) + 1)",
     "ir::FloorDiv(limit.ToExpr(), ir::IntConst(scale)) + 2)"),
]

# A program of tests with its arguments, or "ctest", the name of a test that is
# none, and what it needs. The seed of program_fuzz is that of ctest's run; its
# budget is longer.
def commands(arguments):
    return [
        ["differential_test"],
        ["program_fuzz", "--seed", "1", "--count", "100000",
         "--jobs", str(arguments.jobs), "--seconds", str(arguments.seconds),
         "--max-findings", "1", "--no-shrink"],
    ]


def run(command, **kwargs):
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          **kwargs)


def copy_tree(destination):
    """The tracked files of the tree as they are now."""
    names = run(["git", "ls-files", "-z"], cwd=ROOT).stdout.split("\0")
    for name in filter(None, names):
        source = ROOT / name
        target = destination / name
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            shutil.copy2(source, target)


def environment(tree):
    return dict(os.environ, CCACHE_BASEDIR=str(tree), CCACHE_NOHASHDIR="1",
                TILEFARM_VERIFY="1")


def configure(tree):
    configured = run(["cmake", "--preset", "release"], cwd=tree,
                     env=environment(tree))
    if configured.returncode != 0:
        sys.exit(configured.stdout)


def catch(tree, arguments):
    """The test that fails, or None. Each is built when its turn comes."""
    for target, *options in commands(arguments):
        command = [str(tree / "build/release/tests/bin" / target), *options]
        needed = [target]
        if target == "ctest":
            target, *needed = options
            command = ["ctest", "--test-dir", str(tree / "build/release"),
                       "-R", f"^{target}$"]
        built = run(["ninja", "-C", "build/release", *needed], cwd=tree,
                    env=environment(tree))
        if built.returncode != 0:
            sys.exit(f"{target} does not compile:\n{built.stdout[-4000:]}")
        if run(command, env=environment(tree)).returncode != 0:
            return target
    return None


def check():
    """The faults whose text does not stand exactly once in their source."""
    return [f"{name}: {source} has the text {count} times:\n{right}"
            for name, source, right, _ in FAULTS
            for count in [(ROOT / source).read_text().count(right)]
            if count != 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path,
                        default=ROOT / "build" / "seeded_faults",
                        help="where the copy is made")
    parser.add_argument("--seconds", type=int, default=150,
                        help="of program_fuzz on each fault")
    parser.add_argument("--jobs", type=int, default=2,
                        help="processes of program_fuzz")
    parser.add_argument("--only", nargs="*", help="names of faults")
    parser.add_argument("--check", action="store_true",
                        help="only look whether each fault's text still stands")
    arguments = parser.parse_args()
    stale = check()
    if arguments.check or stale:
        sys.exit("\n".join(stale) or 0)
    tree = arguments.build.resolve()
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(tree)
    configure(tree)
    # With --only, some faults are being worked on.
    if not arguments.only:
        by = catch(tree, arguments)
        if by is not None:
            sys.exit(f"{by} fails without a fault")
    table = []
    for name, source, right, wrong in FAULTS:
        if arguments.only and name not in arguments.only:
            continue
        path = tree / source
        text = path.read_text()
        start = time.monotonic()
        path.write_text(text.replace(right, wrong))
        try:
            by = catch(tree, arguments)
        finally:
            path.write_text(text)
        seconds = time.monotonic() - start
        table.append((name, source, by))
        print(f"{name}: {'caught by ' + by if by else 'MISSED'}"
              f" after {seconds:.0f} s", flush=True)
    print()
    for name, source, by in table:
        print(f"{name:28} {source:44} {by or 'MISSED'}")
    missed = sum(by is None for _, _, by in table)
    print(f"{len(table) - missed} of {len(table)} faults caught")
    return 1 if missed > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
