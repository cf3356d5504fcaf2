"""Servers and workers as processes, for tests of the HTTP port in Python."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 60  # seconds, for whatever a process should do soon

MATMUL = '''@T.prim_func
def mm(A: T.Buffer((128, 128), "float32"),
       B: T.Buffer((128, 128), "float32"),
       C: T.Buffer((128, 128), "float32")):
    for i, j, k in T.grid(128, 128, 128):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
'''


class Failed(Exception):
    pass


def until(what, condition):
    """Waits until condition() is true, and returns it."""
    end = time.monotonic() + PATIENCE
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise Failed(f"after {PATIENCE} s: not {what}")
        time.sleep(0.05)


class Served:
    """A tune-server with its HTTP port, and workers. Ends them all on exit."""

    def __init__(self, programs, flags=(), database=None):
        self.programs = pathlib.Path(programs)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tilefarm-e2e-"))
        self.stack = contextlib.ExitStack()
        self.stack.callback(
            subprocess.run, ["rm", "-rf", str(self.folder)], check=False)
        self.database = database or self.folder / "tune.db"
        self.flags = list(flags)

    def __enter__(self):
        store = [] if "--demo" in self.flags else ["--db", str(self.database)]
        log = self.start("tune-server", "server", *store, "--listen",
                         "127.0.0.1:0", "--http", "127.0.0.1:0", *self.flags)
        self.pages = "http://" + self.line(log, r"^http on (\S+)$")
        self.address = self.line(log, r"^listening on (\S+)$")
        return self

    def __exit__(self, *unused):
        self.stack.close()

    def start(self, program, name, *arguments):
        """Starts a program; returns the file with its output."""
        log = self.folder / f"{name}.log"
        with open(log, "wb") as file:
            process = subprocess.Popen(
                [self.programs / program, *arguments], stdout=file,
                stderr=subprocess.STDOUT, cwd=self.folder)

        def stop():
            process.terminate()
            process.wait(PATIENCE)
        self.stack.callback(stop)
        return log

    def line(self, log, pattern):
        def find():
            found = re.search(pattern, log.read_text(errors="replace"), re.M)
            return found and found[1]
        try:
            return until(f"'{pattern}' in {log}", find)
        except Failed as failed:
            raise Failed(f"{failed}:\n{log.read_text(errors='replace')}")

    def worker(self, name):
        self.start("rpc-worker", name, "--server", self.address, "--name", name,
                   "--state-dir", str(self.folder / f"{name}-state"))

    def tune(self, *arguments, check=True):
        done = subprocess.run(
            [self.programs / "tune", *arguments, "--server", self.address],
            capture_output=True, text=True, check=False, cwd=self.folder,
            timeout=5 * PATIENCE)
        if check and done.returncode != 0:
            raise Failed(f"tune {arguments}: {done.stderr}")
        return done.stdout

    def token(self, role, name):
        file = self.folder / f"{name}.token"
        self.tune("tokens", "create", "--role", role, "--name", name, "-o",
                  str(file))
        return file.read_text().strip()

    def ask(self, path, token=None, body=None):
        """Status and JSON of the API's answer."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(self.pages + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def text(self, path):
        with urllib.request.urlopen(self.pages + path,
                                    timeout=PATIENCE) as answer:
            return answer.read().decode()

    def get(self, path):
        status, answer = self.ask(path)
        if status != 200:
            raise Failed(f"GET {path}: {status} {answer}")
        return answer

    def tuned(self, program, trials, *flags):
        """Tunes an example to the end; returns the job's id."""
        self.tune("run", str(SOURCE / "examples" / program), "--target",
                  "host,cores=1", "--trials", str(trials), "--json", *flags)
        return self.get("/api/v1/jobs")["jobs"][-1]["id"]


def programs_of(argv):
    if len(argv) < 2 or not os.path.isdir(argv[1]):
        raise SystemExit(f"usage: {argv[0]} BIN [UNITTEST ARGUMENTS]")
    return os.path.abspath(argv.pop(1))
