"""A server and a worker on loopback for the duration of a `with` block."""

import json
import os
import subprocess
import tempfile
import time


class Farm:
    def __init__(self, bin_dir, db=None, timeline=None, worker_options=()):
        """`timeline`: a file in which the worker notes what it does when."""
        self.worker_options = list(worker_options)
        if timeline:
            self.worker_options += ["--timeline", timeline]
        self.bin = os.path.abspath(bin_dir)
        self.state = tempfile.TemporaryDirectory(prefix="tilefarm-perf-")
        self.db = db or os.path.join(self.state.name, "tune.db")
        self.processes = []

    def __enter__(self):
        log = open(os.path.join(self.state.name, "server.log"), "w")
        server = subprocess.Popen(
            [self.program("tune-server"), "--db", self.db, "--listen",
             "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=log, text=True)
        self.processes.append(server)
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError("tune-server did not start: see " + log.name)
        self.address = line.split()[-1]
        log = open(os.path.join(self.state.name, "worker.log"), "w")
        self.processes.append(subprocess.Popen(
            [self.program("rpc-worker"), "--server", self.address, "--name",
             "perf", "--state-dir", os.path.join(self.state.name, "worker"),
             *self.worker_options],
            stdout=log, stderr=log))
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            process.wait()
        self.state.cleanup()

    def program(self, name):
        return os.path.join(self.bin, name)

    def tune(self, *args):
        """Runs `tune ARGS --json`; returns the lines as objects."""
        out = subprocess.run(
            [self.program("tune"), *args, "--server", self.address, "--json"],
            stdout=subprocess.PIPE, text=True, check=False)
        lines = [json.loads(line) for line in out.stdout.splitlines() if line]
        if out.returncode != 0:
            raise RuntimeError(f"tune {' '.join(args)}: {lines[-1:]}")
        return lines


def timed(function):
    start = time.monotonic()
    result = function()
    return result, time.monotonic() - start
