#!/usr/bin/env python3
"""Fetches oneDNN 3.2 and MKL, optional peers of the suite, from PyPI.

  tests/perf/suite/fetch_peers.py DIR     (260 MB to load, 0.8 GB unpacked)
  cmake --preset release -DTILEFARM_ONEDNN3_ROOT=DIR/onednn3
  cmake --build --preset release --target suite_bench
  tests/perf/suite/run.py --mkl DIR/mkl ...

Nothing is installed: the wheels' headers and libraries are unpacked to
DIR/onednn3 and DIR/mkl.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

# The folder of each, and its wheels. oneDNN of a later version is there for the
# SYCL runtime alone.
PEERS = {
    "onednn3": ["onednn-cpu-gomp==2023.2.0", "onednn-devel-cpu-gomp==2023.2.0"],
    "mkl": ["mkl==2026.2.0"],
}


def unpack(wheel, folder):
    """The wheel's NAME.data/data/{include,lib}/... to folder/..."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            parts = member.split("/")
            if (len(parts) < 4 or not parts[0].endswith(".data")
                    or parts[1] != "data" or parts[2] not in ("include", "lib")
                    or ".." in parts or not parts[-1]):
                continue
            path = os.path.join(folder, *parts[2:])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with archive.open(member) as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--only", choices=PEERS, nargs="+",
                        default=list(PEERS))
    args = parser.parse_args()
    for peer in args.only:
        for package in PEERS[peer]:
            with tempfile.TemporaryDirectory() as wheels:
                subprocess.run([sys.executable, "-m", "pip", "download",
                                "--quiet", "--no-deps", "--only-binary=:all:",
                                "--dest", wheels, package], check=True)
                for wheel in os.listdir(wheels):
                    unpack(os.path.join(wheels, wheel),
                           os.path.join(args.folder, peer))
        print(os.path.abspath(os.path.join(args.folder, peer)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
