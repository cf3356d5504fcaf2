#!/usr/bin/env python3
"""tune regress on changes whose cause is known, measured on a real worker.

  regress_cases.py BIN [--bisections 20] [--commits 64] [--percent 5]
                   [--seed 1] [--only bisect|attribution] [--json]

The kernel is a matrix product that the real tunec compiles. A commit's tunec is
a script that adds a chain of dependent operations to each call of the kernel,
as long as the file `work` beside it says: the slowdown of a code generator.

bisect: repositories of --commits commits in which one, at random, slows the
kernel by --percent. Prints how often `tune regress bisect` names it, with the
builds that it needed.

attribution: `tune regress gate` where the code generator is slower by 10 %,
where the schedule is worse, where both are, and where something else has taken
the device's memory bandwidth since the baseline was measured: with the same code,
and with a slower code generator, too. Prints the causes that it names beside the
true ones.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from served import MATMUL, Served, until  # noqa: E402

PAGE = 4096
# Beyond the last-level cache: its time is that of the memory.
COPY = '''@T.prim_func
def copy(A: T.Buffer((4096, 4096), "float32"),
         B: T.Buffer((4096, 4096), "float32")):
    for i, j in T.grid(4096, 4096):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
'''
TRACE = '''b0 = sch.get_block(name="Y", func_name="mm")
l1, l2, l3 = sch.get_loops(block=b0)
l4, l5 = sch.split(loop=l2, factors=[{}, {}])
sch.reorder(l1, l4, l3, l5)
sch.vectorize(loop=l5)
'''
COPY_TRACE = '''b0 = sch.get_block(name="B", func_name="copy")
l1, l2 = sch.get_loops(block=b0)
l3, l4 = sch.split(loop=l2, factors=[512, 8])
sch.vectorize(loop=l4)
'''
SUITE = '''name = "cases"
[[benchmark]]
name = "kernel"
program = "kernel.py"
trace = "kernel.trace"
target = "host,cores=1"
'''
TUNEC = '''#!/usr/bin/env python3
"""tunec, whose kernels do further work in each call."""
import pathlib
import re
import subprocess
import sys
import tempfile

REAL = {real!r}
arguments = sys.argv[1:]
if "--symbol" not in arguments:
    sys.exit(subprocess.run([REAL, *arguments]).returncode)
steps = int((pathlib.Path(__file__).parent / "work").read_text())
name, output = arguments.index("--symbol") + 1, arguments.index("-o") + 1
symbol, artifact = arguments[name], arguments[output]
with tempfile.TemporaryDirectory() as folder:
    arguments[name], arguments[output] = "kernel", folder + "/kernel.a"
    subprocess.run([REAL, *arguments], check=True)
    header = pathlib.Path(folder, "kernel.h").read_text()
    count = re.search(r"^int kernel\\((.*)\\);$", header, re.M)[1].count(",") + 1
    declared = ", ".join("void* p%d" % i for i in range(count))
    passed = ", ".join("p%d" % i for i in range(count))
    pathlib.Path(folder, "slower.c").write_text("""
int kernel(%s);
int %s(%s) {{
  const int result = kernel(%s);
  float chain = *(const float*)p%d;
  for (long step = 0; step < %d; ++step) chain = chain * 0.999f + 0.001f;
  __asm__ volatile("" : : "x"(chain));
  return result;
}}
""" % (declared, symbol, declared, passed, count - 1, steps))
    subprocess.run(["cc", "-O2", "-ffp-contract=off", "-fPIC", "-shared",
                    "-nostartfiles", "slower.c", "kernel.a", "-o", "artifact.so"], cwd=folder,
                   check=True)
    pathlib.Path(artifact).write_bytes(
        pathlib.Path(folder, "artifact.so").read_bytes())
'''


class Farm(Served):
    """A server and a worker that compare artifacts."""

    def __init__(self, programs):
        super().__init__(programs, ["--allow-artifacts", "--artifact-isolation",
                                    "none", "--no-canary"])

    def __enter__(self):
        super().__enter__()
        self.worker("box")
        until("a device", lambda: [
            one for one in self.get("/api/v1/devices")["devices"]
            if one["state"] == "idle"])
        return self

    def regress(self, *arguments):
        """Exit code and JSON of tune regress."""
        command, *rest = arguments
        done = subprocess.run(
            [self.programs / "tune", "regress", command, "--json", *rest],
            capture_output=True, text=True, check=False, cwd=self.folder,
            env={**os.environ, "TUNE_SERVER": self.address})
        try:
            return done.returncode, json.loads(done.stdout)
        except json.JSONDecodeError:
            raise SystemExit(f"tune regress {command}: {done.returncode} "
                             f"{done.stdout}{done.stderr}")


class Source:
    """A folder with a suite, its kernel and the tunec that builds it."""

    def __init__(self, folder, programs, program, trace):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write("kernel.py", program)
        self.write("suite.toml", SUITE)
        self.write("kernel.trace", trace)
        self.write("tunec", TUNEC.format(
            real=str(pathlib.Path(programs) / "tunec")))
        (self.folder / "tunec").chmod(0o755)
        self.write("work", "0")

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def path(self, name):
        return str(self.folder / name)


def seconds_of(source, steps, inputs):
    """The least time of a call of the kernel with so much work."""
    source.write("work", str(steps))
    with tempfile.TemporaryDirectory() as folder:
        library = folder + "/kernel.so"
        command = [source.path("tunec"), source.path("kernel.py"), "--target",
                   "host,cores=1", "--symbol", "kernel_", "-o", library,
                   "--allow-rounding", "--trace", source.path("kernel.trace")]
        subprocess.run(command, check=True, capture_output=True)
        call = ctypes.CDLL(library).kernel_
    # Aligned, as the worker's are.
    buffers = [ctypes.create_string_buffer(4 * size + PAGE) for size in inputs]
    call.argtypes = [ctypes.c_void_p] * len(buffers)
    addresses = [-(-ctypes.addressof(one) // PAGE) * PAGE for one in buffers]
    best = float("inf")
    end = time.monotonic() + 1
    while time.monotonic() < end:
        start = time.perf_counter()
        call(*addresses)
        best = min(best, time.perf_counter() - start)
    return best


class Work:
    """How much work makes a kernel slower by a share of its time."""

    def __init__(self, source, inputs):
        probe = 20_000
        self.plain = seconds_of(source, 0, inputs)
        # So much that the noise of the kernel itself does not count.
        while (slow := seconds_of(source, probe, inputs)) < 1.5 * self.plain:
            probe *= 4
        self.step = (slow - self.plain) / probe
        source.write("work", "0")

    def of(self, share):
        return max(1, round(share * self.plain / self.step))


# --- Bisection ---------------------------------------------------------------

def repository(source, commits, first_slow, steps):
    """The ids of the commits, oldest first."""
    def git(*arguments):
        return subprocess.run(
            ["git", "-C", source.folder, "-c", "user.name=t", "-c",
             "user.email=t@example.org", *arguments], check=True,
            capture_output=True, text=True).stdout.strip()
    git("init", "-q")
    ids = []
    for number in range(commits):
        source.write("work", str(steps if number >= first_slow else 0))
        source.write("number", str(number))
        git("add", "-A")
        git("commit", "-q", "-m", f"commit {number}")
        ids.append(git("rev-parse", "HEAD"))
    return ids


def bisections(farm, options, rng):
    matmul = [128 * 128] * 3
    trace = TRACE.format(8, 16)
    work = Work(Source(farm.folder / "measured", farm.programs, MATMUL, trace),
                matmul)
    steps = work.of(options.percent / 100)
    results = []
    for run in range(options.bisections):
        source = Source(farm.folder / f"repository{run}", farm.programs, MATMUL,
                        trace)
        first_slow = rng.randrange(1, options.commits)
        ids = repository(source, options.commits, first_slow, steps)
        start = time.monotonic()
        _, answer = farm.regress(
            "bisect", ids[0], ids[-1], "--suite", source.path("suite.toml"),
            "--benchmark", "kernel", "--repository", str(source.folder),
            "--tunec", "tunec", "--", "true")
        results.append({
            "slow_from": first_slow, "result": answer["result"],
            "right": answer.get("commit") == ids[first_slow],
            "ratio": answer.get("ratio"), "builds": answer["builds"],
            "questions": answer["questions"],
            "seconds": time.monotonic() - start})
        if not options.json:
            one = results[-1]
            print(f"  slow from commit {first_slow}: {one['result']}, "
                  f"{'right' if one['right'] else 'NOT RIGHT'}, ratio "
                  f"{one['ratio']}, {one['builds']} builds, "
                  f"{one['questions']} questions, {one['seconds']:.0f} s",
                  flush=True)
    return results


# --- Attribution -------------------------------------------------------------

@contextlib.contextmanager
def memory_taken():
    """Another process that streams through memory."""
    burner = subprocess.Popen([
        sys.executable, "-c",
        "a = bytearray(1 << 28)\nb = memoryview(bytearray(1 << 28))\n"
        "while True: a[:] = b"])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


# Points of the baseline that a device is compared with (six at least).
POINTS_OF_DEVICE = 8


def case(farm, name, truth, old, new, points=1, during=contextlib.nullcontext):
    for number in range(points):
        farm.regress("run", "--suite", old.path("suite.toml"), "--commit",
                     f"old{number}", "--series", name, "--tunec",
                     old.path("tunec"))
    with during():
        _, gate = farm.regress(
            "gate", "--suite", new.path("suite.toml"), "--commit", "new",
            "--baseline", "main", "--series", name, "--tunec",
            new.path("tunec"), "--baseline-tunec", old.path("tunec"))
    one = gate["benchmarks"][0]
    if one["verdict"] not in ("slower", "same", "inconclusive", "faster"):
        raise SystemExit(f"{name}: no comparison: {json.dumps(one)}")
    attribution = one.get("attribution") or {"causes": [], "text": "none"}
    return {"case": name, "truth": sorted(truth), "verdict": one["verdict"],
            "causes": sorted(each["cause"] for each in attribution["causes"]),
            "text": attribution["text"]}


def attributions(farm, options):
    def source(name, program, trace, steps):
        made = Source(farm.folder / name, farm.programs, program, trace)
        made.write("work", str(steps))
        return made
    good, bad = TRACE.format(8, 16), TRACE.format(32, 4)
    matmul = Work(source("timed", MATMUL, good, 0), [128 * 128] * 3)
    copy = Work(source("timed-copy", COPY, COPY_TRACE, 0), [4096 * 4096] * 2)
    cases = [
        ("code", ["code generator"],
         source("old", MATMUL, good, 0),
         source("code", MATMUL, good, matmul.of(0.1))),
        ("schedule", ["schedule"],
         source("old", MATMUL, good, 0), source("schedule", MATMUL, bad, 0)),
        ("both", ["code generator", "schedule"],
         source("old", MATMUL, good, 0),
         # A third of the change at least.
         source("both", MATMUL, bad, matmul.of(1.0))),
        ("device", ["device"],
         source("old-copy", COPY, COPY_TRACE, 0),
         # Other bytes, no slower.
         source("same-copy", COPY, COPY_TRACE, 1), POINTS_OF_DEVICE,
         memory_taken),
        ("code and device", ["code generator", "device"],
         source("old-copy", COPY, COPY_TRACE, 0),
         # Less of the time while the memory is shared.
         source("copy", COPY, COPY_TRACE, copy.of(0.3)), POINTS_OF_DEVICE,
         memory_taken),
    ]
    results = []
    for one in cases:
        results.append(case(farm, *one))
        if not options.json:
            last = results[-1]
            print(f"  {last['case']}: {last['verdict']}; true "
                  f"{', '.join(last['truth'])}; named "
                  f"{', '.join(last['causes']) or 'none'} ({last['text']})",
                  flush=True)
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--bisections", type=int, default=20)
    parser.add_argument("--commits", type=int, default=64)
    parser.add_argument("--percent", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["bisect", "attribution"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = {}
    with Farm(os.path.abspath(options.bin)) as farm:
        if options.only != "bisect":
            result["attribution"] = attributions(farm, options)
        if options.only != "attribution":
            result["bisections"] = bisections(farm, options,
                                              random.Random(options.seed))
    if options.json:
        print(json.dumps(result))
        return
    for name, right in (
            ("attribution", lambda one: one["causes"] == one["truth"]),
            ("bisections", lambda one: one["right"])):
        if name in result:
            print(f"{name}: right in {sum(map(right, result[name]))} of "
                  f"{len(result[name])}")


if __name__ == "__main__":
    main()
