#!/usr/bin/env python3
"""What kernels of CUDA do, counted without a GPU: instructions, wavefronts of
shared memory, sectors of global memory.

  gpu_counters.py PROGRAM.py... [--target cuda:sm_90a] [--trace FILE | --draw N]
                  [--blocks 2] [--lines N] [--ptxas FILE] [--allow-rounding]
  gpu_counters.py MODEL.onnx... [--top 20]   with MODEL.npz (models.py) beside it

The PTX is executed by the driver of the tests (tests/gpu/fake_cuda.h), of large
grids only some blocks. For each kernel:

  pipes     cycles that each part of a multiprocessor of an H100 needs for one
            block: issue, fp32, alu, sfu, tensor, shared; the largest bounds it.
            By PTX, which has more moves and address arithmetic than machine code
  conflicts wavefronts of shared memory over the least possible
  sectors   of global memory, over the least possible for each instruction
  blocks    of the grid, how many a multiprocessor holds (with ptxas), and the
            share of its places that are used over all rounds

--lines N also prints the N instructions with the most lost wavefronts or
sectors, and of all pipes.

The last line has bounds of the time: what its busiest pipes need for the blocks
of one multiprocessor, its sectors from the second-level cache, a launch; and what
a warp alone waits for results. They show where to look, and are no times. Of a
model: the kernels in which it would spend the most time by the larger of both.
"""

import argparse
import collections
import ctypes
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/gpu"))
import artifacts  # noqa: E402

BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
MULTIPROCESSORS, REGISTERS, SHARED, THREADS = 132, 65536, 227 * 1024, 2048
# What a multiprocessor does in a cycle ("CUDA C++ Programming Guide",
# arithmetic instructions; H100 white paper): warps' instructions, and for
# products multiplications.
ISSUE, FP32, ALU, SFU = 4, 4, 2, 0.5
MMA, WGMMA = 1024, 2048  # of 16 bits
SFU_NAMES = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh")


def opcode_of(text):
    return re.sub(r"^@!?%?\w+\s+", "", text).split()[0]


def cycles_of(opcode, entry):
    """Pairs of a pipe and its cycles, for all executions of an instruction."""
    warps = entry["warps"]
    found = re.search(r"m(\d+)n(\d+)k(\d+)", opcode)
    if found:
        m, n, k = map(int, found.groups())
        rate = WGMMA if opcode.startswith("wgmma") else MMA
        # A matrix unit takes 16 bytes of terms at a time, of any type.
        per_word = {"tf32": 0.5, "s8": 2, "u8": 2}
        scale = next((per_word[p] for p in opcode.split(".") if p in per_word), 1)
        warps_of = 4 if opcode.startswith("wgmma") else 1
        yield "tensor", warps / warps_of * m * n * k / (rate * scale)
    yield "issue", warps / ISSUE
    name = opcode.split(".")[0]
    if "wavefronts" in entry:
        yield "shared", entry["wavefronts"]
    elif name in SFU_NAMES:
        yield "sfu", warps / SFU
    elif name == "shfl":
        yield "shared", warps
    elif re.search(r"\.f32$|\.f32x2$|\.f16x2$|\.bf16x2$", opcode) and name in (
            "fma", "add", "sub", "mul", "mad"):
        yield "fp32", warps / FP32
    elif not found and not name.startswith(("ld", "st", "cp", "bar", "mov")):
        yield "alu", warps / ALU


def parameters(program):
    text = program.read_text()
    for shape, dtype in re.findall(r"T\.Buffer\(\(([^)]*)\), \"(\w+)\"\)", text):
        extents = [int(e) for e in shape.split(",") if e.strip()]
        bits = re.search(r"\d+$", dtype)
        yield math.prod(extents) * (BYTES[bits[0]] if bits else 1)


def registers_of(ptxas, ptx, model):
    """By kernel; empty without ptxas."""
    if not ptxas:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "k.ptx")
        file.write_text(ptx)
        made = subprocess.run([ptxas, "-v", "-arch=" + model, file, "-o",
                               file.with_suffix(".cubin")],
                              capture_output=True, text=True)
    names = re.findall(r"Compiling entry function '(\w+)'", made.stderr)
    return dict(zip(names, map(int, re.findall(r"Used (\d+) reg", made.stderr))))


def counting(args, counters):
    """The environment of a process whose kernels are counted."""
    return os.environ | {
        "TILEFARM_CUDA_DRIVER": str(args.build / "tests/gpu/new/libcuda.so.1"),
        "TILEFARM_PTXAS": "", "TILEFARM_NVJITLINK": "",
        "FAKE_CUDA_COUNTERS": str(counters),
        "FAKE_CUDA_COUNTED_BLOCKS": str(args.blocks),
        "FAKE_CUDA_MEMORY": str(16 << 30)}


def rounding_of(args):
    return ["--allow-rounding"] if args.allow_rounding else []


def launches_of(text):
    decoder = json.JSONDecoder()
    launches = []
    while text.strip():
        launch, end = decoder.raw_decode(text)
        text = text[end:].lstrip()
        launches.append(launch)
    return launches


def run_in_child(library, sizes):
    buffers = [ctypes.create_string_buffer(size + 64) for size in sizes]
    failure = artifacts.call(library, *buffers)
    if failure:
        sys.exit(failure)


def count(args, program):
    tune_opt = [args.build / "bin/tune-opt", program, f"--target={args.target}"]
    schedule = (["--trace", args.trace] if args.trace else
                ["--draw", str(args.draw)] if args.draw else
                ["--default", *rounding_of(args)])
    made = subprocess.run([*tune_opt, *schedule, "--stage=asm"],
                          capture_output=True, text=True)
    if made.returncode != 0:
        print(program.stem, "refused:", made.stderr.strip()[-300:])
        return
    registers = registers_of(args.ptxas, made.stdout, args.target.split(":")[1])
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder, "kernel.so")
        trace = args.trace
        if args.draw:
            trace = pathlib.Path(folder, "drawn.trace")
            drawn = subprocess.run([*tune_opt, *schedule, "--stage=trace"],
                                   capture_output=True, text=True)
            trace.write_text(drawn.stdout)
        counters = pathlib.Path(folder, "counters")
        environment = counting(args, counters)
        subprocess.run([args.build / "bin/tunec", program, "--target",
                        args.target, "-o", library,
                        *(["--trace", trace] if trace else rounding_of(args))],
                       check=True, env=environment, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        sizes = ",".join(map(str, parameters(program)))
        subprocess.run([sys.executable, __file__, "--call", library, sizes],
                       check=True, env=environment)
        launches = launches_of(counters.read_text())
    print(f"{program.stem}, {args.target}")
    for launch in launches:
        report(launch, registers, args.lines)


# Of an H100: cycles a second, what its second-level cache delivers, and what a
# kernel of a graph takes at least.
CLOCK, CACHE_RATE, LAUNCH = 1.7e9, 5.5e12, 2e-6
# Cycles until results are there ("Dissecting the NVIDIA Hopper Architecture
# through Microbenchmarking"); of the rest 4.
FETCH = 500
LATENCIES = {"ld.global": FETCH, "ld.shared": 30, "ldmatrix": 33, "bar": 30, "shfl": 25, "mma": 33,
             "ex2": 18, "rcp": 18, "rsqrt": 18, "sqrt": 18, "lg2": 18}
WITHOUT_RESULT = ("st", "bar", "cp", "bra", "ret", "red", "mbarrier")
# What instructions are not moved across, and how far they are moved at most.
ENDS = ("bra", "ret", "bar", "mbarrier", "cp.async.wait")
WINDOW = 64


def waits_of(launch):
    """Cycles of one warp alone. Between branches and barriers each instruction is issued
    when what it reads is there, as the assembler orders them, but no earlier than the
    one so many before it, and loads after stores to the same memory. Copies that N
    other groups may follow have the time of N average parts between waits."""
    start, total = 0.0, 0.0
    copies, issued = [], []
    ready, stored = {}, {}
    warps = -(-math.prod(launch["threads"]) // 32)
    executed_before = None

    def end_block():
        nonlocal start, total
        if issued:
            end = max(*issued, start + len(issued))
            total += (end - start) * executed_before
            start = end
            issued.clear()

    for entry in launch["instructions"]:
        if entry["warps"] != executed_before:
            end_block()
            executed_before = entry["warps"]
        opcode = opcode_of(entry["text"])
        registers = re.findall(r"%[a-z]+\d+", entry["text"])
        name, *parts = opcode.split(".")
        latency = next((cycles for prefix, cycles in LATENCIES.items()
                        if opcode.startswith(prefix)), 4)
        results = 0
        if name not in WITHOUT_RESULT and registers:
            operands = entry["text"].split(opcode, 1)[1].lstrip()
            first = operands.split("}")[0] if operands.startswith("{") else (
                operands.split(",")[0])
            results = len(re.findall(r"%[a-z]+\d+", first))
        guard = 1 if entry["text"].startswith("@") else 0
        sources = registers[:guard] + registers[guard + results:]
        memory = next((part for part in parts if part in ("global", "shared", "local")), None)
        after = stored.get(memory, 0) if memory and "nc" not in parts else 0
        window = issued[-WINDOW] if len(issued) >= WINDOW else start
        now = max([window, after, *(ready.get(register, 0) for register in sources)]) + 1
        issued.append(now)
        if name in ("st", "red", "atom"):
            stored[memory] = now
        for register in registers[guard:guard + results]:
            ready[register] = now + latency
        if opcode.startswith(ENDS):
            issued[-1] = max(issued) + max(latency - 4, 0)
            end_block()
        if opcode.startswith(("cp.async.wait_group", "mbarrier.try_wait")):
            group = re.search(r"wait_group\s+(\d+)", entry["text"])
            copies.append((entry["warps"], int(group[1]) if group else 1))
    end_block()
    part = total / max(sum(executed for executed, _ in copies), 1)
    total += sum(executed * max(FETCH / max(behind, 1) - part, 0)
                 for executed, behind in copies)
    return total / launch["blocks"] / warps


def seconds_of(launch):
    """Bounds of one launch, of pipes, "cache" and "launch", and a warp's waits."""
    pipes = collections.Counter()
    sectors = 0
    for entry in launch["instructions"]:
        opcode = opcode_of(entry["text"])
        for pipe, cycles in cycles_of(opcode, entry):
            pipes[pipe] += cycles / launch["blocks"]
        sectors += entry.get("sectors", 0) / launch["blocks"]
    grid = math.prod(launch["grid"])
    rounds = math.ceil(grid / MULTIPROCESSORS)
    bounds = {pipe: rounds * cycles / CLOCK for pipe, cycles in pipes.items()}
    bounds["cache"] = sectors * 32 * grid / CACHE_RATE
    bounds["launch"] = LAUNCH
    return bounds, waits_of(launch) / CLOCK


def count_model(args, model):
    import numpy
    record = numpy.load(model.with_suffix(".npz"))
    with tempfile.TemporaryDirectory() as folder:
        inputs = []
        for key in record.files:
            if key.startswith("in_"):
                numpy.save(pathlib.Path(folder, key + ".npy"), record[key])
                inputs.append(f"{key[3:]}={folder}/{key}.npy")
        counters = pathlib.Path(folder, "counters")
        subprocess.run([args.build / "bin/tunec", model, "--target", args.target,
                        "-o", pathlib.Path(folder, "model.so"),
                        *rounding_of(args),
                        *[word for i in inputs for word in ("--run", i)]],
                       check=True, env=counting(args, counters),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        launches = launches_of(counters.read_text())
    kernels = collections.defaultdict(list)
    for launch in launches:
        kernels[launch["kernel"]].append((*seconds_of(launch), launch))
    spent = {name: (sum(max(bounds.values()) for bounds, _, _ in runs),
                    sum(max(waits, *bounds.values()) for bounds, waits, _ in runs))
             for name, runs in kernels.items()}
    print(f"{model.stem}, {args.target}: {len(launches)} launches, "
          f"{1e3 * sum(s[0] for s in spent.values()):.3f} ms, with waits "
          f"{1e3 * sum(s[1] for s in spent.values()):.3f} ms")
    for name in sorted(spent, key=lambda n: -spent[n][1])[:args.top]:
        bounds, waits, launch = kernels[name][0]
        print(f"  {1e6 * spent[name][1]:7.1f} us, {len(kernels[name])} times "
              f"{bounds_text(bounds, waits)}: {math.prod(launch['grid'])} x "
              f"{math.prod(launch['threads'])}, {name}")


def bounds_text(bounds, waits):
    first = sorted(bounds.items(), key=lambda b: -b[1])[:3]
    return ", ".join(f"{what} {1e6 * seconds:.1f}"
                     for what, seconds in [*first, ("waits", waits)])


def residents(launch, registers):
    """Blocks that a multiprocessor holds."""
    threads = math.prod(launch["threads"])
    by_shared = SHARED // max(launch["shared_bytes"] + 1024, 1)
    used = registers.get(launch["kernel"])
    by_registers = (REGISTERS // (-(-used // 8) * 8 * -(-threads // 32) * 32)
                    if used else 32)
    return max(min(by_shared, by_registers, THREADS // threads, 32), 1)


def report(launch, registers, lines):
    pipes = collections.Counter()
    sums = collections.Counter()
    for entry in launch["instructions"]:
        for pipe, cycles in cycles_of(opcode_of(entry["text"]), entry):
            pipes[pipe] += cycles / launch["blocks"]
        for key in ("warps", "lanes", "wavefronts", "least_wavefronts",
                    "sectors", "least_sectors"):
            sums[key] += entry.get(key, 0)
    grid = math.prod(launch["grid"])
    held = residents(launch, registers)
    rounds = math.ceil(grid / (MULTIPROCESSORS * held))
    cells = [
        f"  {launch['kernel']}: {grid} blocks of {math.prod(launch['threads'])}, "
        f"{launch['shared_bytes']} B shared, "
        f"{registers.get(launch['kernel'], '?')} registers, {held} held, "
        f"{grid / (rounds * MULTIPROCESSORS * held):.2f} used",
        "    pipes " + ", ".join(f"{pipe} {cycles:.0f}"
                                 for pipe, cycles in pipes.most_common()),
        f"    lanes {sums['lanes'] / sums['warps']:.1f}, conflicts "
        f"{sums['wavefronts'] / max(sums['least_wavefronts'], 1):.2f}, sectors "
        f"{sums['sectors'] / max(sums['least_sectors'], 1):.2f} "
        f"({sums['sectors'] * 32 / launch['blocks']:.0f} B a block)",
        "    us: " + bounds_text(*seconds_of(launch)),
    ]
    print("\n".join(cells))

    def lost(entry):
        return (entry.get("wavefronts", 0) - entry.get("least_wavefronts", 0) +
                entry.get("sectors", 0) - entry.get("least_sectors", 0))
    worst = sorted(launch["instructions"], key=lost, reverse=True)[:lines]
    for entry in worst:
        if lost(entry) > 0:
            print("      ", {k: v for k, v in entry.items() if k != "text"},
                  entry["text"][:90])
    for title, key in (("warps", "warps"), ("wavefronts", "wavefronts")):
        by_name = collections.Counter()
        for entry in launch["instructions"]:
            by_name[opcode_of(entry["text"])] += (entry.get(key, 0) /
                                                  launch["blocks"])
        if lines:
            print(f"      {title}:", ", ".join(
                f"{name} {n:.0f}" for name, n in by_name.most_common(2 * lines)
                if n > 0))


def main():
    if sys.argv[1:2] == ["--call"]:
        run_in_child(sys.argv[2], list(map(int, sys.argv[3].split(","))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--trace", type=pathlib.Path)
    parser.add_argument("--draw", type=int)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--lines", type=int, default=0)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--allow-rounding", action="store_true",
                        help="of default schedules, as tunec has it")
    parser.add_argument("--ptxas", default=artifacts.find_ptxas())
    parser.add_argument("--build", type=pathlib.Path,
                        default=ROOT / "build/release")
    args = parser.parse_args()
    for program in args.programs:
        (count_model if program.suffix == ".onnx" else count)(args, program)
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
