#!/usr/bin/env python3
"""Runs the commands of a document, in order, in one shell.

  tests/e2e/documents_run_test.py BIN DOCUMENT

BIN has the programs. Commands are the ```sh blocks below a line <!-- run -->, or
all of them where the document has no such line. They run in a new folder that has
the repository's examples; the server listens on a free port instead of the
default, and jobs have few trials. EXPECTED says what must be in the output.
"""
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRIALS = 12  # instead of more

# In this order.
EXPECTED = {
    "README.md": [
        r"^mm_relu .*",
        r"build it with: tunec examples/mm_relu\.py",
        r"def main\(A",
        r"exact device model",
        r"done.* 12",
        r"^job-[0-9a-f]+ .* done ",
        r"^6 on x86-64|^6 on aarch64",
        r"^  2: C, float32 \[128, 128\], row-major, 65536 bytes, written",
        r"^4\.0$",
    ],
    "docs/examples.md": [
        r"^attention .* 12$",
        r"^function   attention",
        r"^algorithm ",
        r"^floats ",
        r"^attention .* 12$",
        r"tunec: attention: record of",
        r"^layer_norm .* 12$",
        r"bottleneck",
        r"ONE RUN TOUCHES",
        r"runner-up",
        r"^dense_int8 .* 12$",
        r"dense_int8_packed_bytes\(",
        r"^depthwise .* 12$",
        r"^vectorize ",
        r"def depthwise\(X: T",
        r"^--- flat",
    ],
    "docs/tutorial.md": [
        r"def silu\(X: T\.Buffer\(\(128, 256\)",
        r"silu: default schedule, since no database was given",
        r"int silu\(const void\* X_0, const void\* W_1, void\* Y_2\);",
        r"T\.vectorized\(",
        r"^0\.7311$",
        r"done.* 12",
        r"build it with: tunec silu\.py",
        r"done.* 8",
        r"job-[0-9a-f]+ .* done ",
        r"^desk ",
        r"exact device",
        r"^0\.7311$",
        r"def main\(X: T",
        r"sch\.",
        r"^  bottleneck  ",
        r"^--- vectorize",
    ],
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def commands(text):
    marked = re.findall(r"^<!-- run -->\n```sh\n(.*?)^```", text, re.S | re.M)
    return marked or re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)


def adapted(block, address):
    """Few trials, and the server at `address`."""
    block = re.sub(r"--trials (\d+)",
                   lambda m: f"--trials {min(int(m[1]), TRIALS)}", block)
    block = block.replace("127.0.0.1:7070", address)
    # Only from there on: tunec asks a server that it knows.
    if "tune-server" in block:
        block = f"export TUNE_SERVER={address}\n{block}"
    return block


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    document = sys.argv[2]
    address = f"127.0.0.1:{free_port()}"
    blocks = [adapted(block, address)
              for block in commands((ROOT / document).read_text())]
    # Whatever happens, server and worker end with the shell.
    script = ("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
              "set -exo pipefail\n" + "\n".join(blocks))
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "examples").symlink_to(ROOT / "examples")
        environment = {
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "HOME": folder,
            "PYTHONDONTWRITEBYTECODE": "1", "TUNE_SERVER_LISTEN": address}
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            timeout=280)
    print(done.stdout)
    if done.returncode != 0:
        sys.exit(f"a command failed with {done.returncode}")
    at = 0
    for pattern in EXPECTED[document]:
        found = re.compile(pattern, re.M).search(done.stdout, at)
        if found is None:
            sys.exit(f"not in the output, or not in this order: {pattern}")
        at = found.end()


if __name__ == "__main__":
    main()
