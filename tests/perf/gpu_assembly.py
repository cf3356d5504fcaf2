#!/usr/bin/env python3
"""What ptxas makes of kernels: the default schedule of each program, and
candidates drawn from its space.

  gpu_assembly.py DIR [NAME...] [--ptxas FILE] [--models sm_70 sm_80 sm_86 sm_90a]
                  [--draws 20] [--jobs 2] [--allow-rounding]

DIR has the programs of gpu_programs.py. Of each program and model: candidates
that do not compile or assemble, that spill registers, and of which ptxas warns
that it serialises products of warpgroups (C75xx); and what the default schedule
has of these: the one that keeps floats as written, or any with
--allow-rounding. ptxas 13 knows no sm_70.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/gpu"))
import artifacts  # noqa: E402


def fault(args, program, model, draw):
    """Empty, or what is wrong with one candidate; None: the default."""
    schedule = ["--draw", str(draw)]
    if draw is None:
        schedule = ["--default", *(["--allow-rounding"] if args.allow_rounding
                                   else [])]
    made = subprocess.run(
        [args.tune_opt, program, f"--target=cuda:{model}", *schedule,
         "--stage=asm"], capture_output=True, text=True)
    if made.returncode != 0:
        return "refused: " + made.stderr.strip().splitlines()[-1]
    with tempfile.TemporaryDirectory(prefix="tilefarm-ptx-") as folder:
        ptx = pathlib.Path(folder, "kernel.ptx")
        ptx.write_text(made.stdout)
        done = subprocess.run(
            [args.ptxas, "-v", "-arch=" + model, ptx, "-o",
             ptx.with_suffix(".cubin")], capture_output=True, text=True)
    report = done.stdout + done.stderr
    if done.returncode != 0:
        return "ptxas: " + report.strip().splitlines()[0]
    warned = re.search(r"C75\d\d", report)
    if warned:
        return "warning " + warned[0]
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill stores", report)))
    stack = max(map(int, re.findall(r"(\d+) bytes stack frame", report)))
    if spilled:
        return f"spills {spilled} bytes"
    return f"stack of {stack} bytes" if stack else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ptxas", default=artifacts.find_ptxas())
    parser.add_argument("--allow-rounding", action="store_true")
    parser.add_argument("--tune-opt", default=ROOT / "build/release/bin/tune-opt")
    parser.add_argument("--models", nargs="+",
                        default=["sm_70", "sm_80", "sm_86", "sm_90a"])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    if not args.ptxas:
        sys.exit("no ptxas here: name one by --ptxas")
    programs = [p for p in sorted(pathlib.Path(args.folder).glob("*.py"))
                if not args.names or p.stem in args.names]
    totals = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for program in programs:
            for model in args.models:
                draws = [None, *range(1, args.draws + 1)]
                faults = list(pool.map(
                    lambda draw: fault(args, program, model, draw), draws))
                bad = [(d, f) for d, f in zip(draws[1:], faults[1:]) if f]
                total = totals.setdefault(model, [0, 0, 0])
                total[0] += args.draws
                total[1] += len(bad)
                total[2] += bool(faults[0])
                print(f"{program.stem:20} {model:7} default: "
                      f"{faults[0] or 'good'}; {len(bad)} of {args.draws} draws"
                      + "".join(f"\n    {d}: {f[:150]}" for d, f in bad),
                      flush=True)
    for model, (draws, bad, defaults) in totals.items():
        print(f"{model}: {defaults} of {len(programs)} defaults, {bad} of "
              f"{draws} draws")
    return 0


if __name__ == "__main__":
    sys.exit(main())
