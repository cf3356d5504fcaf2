#!/usr/bin/env python3
"""Runs the commands of docs/tutorial.md, in order, in one shell.

  tests/e2e/tutorial_test.py BIN

BIN has the programs. The server listens on a free port instead of the default.
"""
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

TUTORIAL = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"

# What must be in the output, in this order.
EXPECTED = [
    r"def silu\(X: T\.Buffer\(\(128, 256\)",
    r"silu: default schedule, since no database was given",
    r"int silu\(const void\* X_0, const void\* W_1, void\* Y_2\);",
    r"T\.vectorized\(",
    r"^0\.7311$",
    r"done.* 32",
    r"build it with: tunec silu\.py",
    r"done.* 8",
    r"job-[0-9a-f]+ .* done ",
    r"^desk ",
    r"(tuned|record|exact device)",
    r"^0\.7311$",
    r"def main\(X: T",
    r"sch\.",
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    blocks = re.findall(r"^```sh\n(.*?)^```", TUTORIAL.read_text(), re.S | re.M)
    address = f"127.0.0.1:{free_port()}"
    # Only from there on: tunec asks a server that it knows.
    blocks = [f"export TUNE_SERVER={address}\n" + block
              if "tune-server" in block else block for block in blocks]
    # Whatever happens, server and worker end with the shell.
    script = ("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
              "set -eo pipefail\n" + "".join(blocks))
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "HOME": folder,
            "TUNE_SERVER_LISTEN": address}
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            timeout=280)
    print(done.stdout)
    if done.returncode != 0:
        sys.exit(f"a command failed with {done.returncode}")
    at = 0
    for pattern in EXPECTED:
        found = re.compile(pattern, re.M).search(done.stdout, at)
        if found is None:
            sys.exit(f"not in the output, or not in this order: {pattern}")
        at = found.end()


if __name__ == "__main__":
    main()
