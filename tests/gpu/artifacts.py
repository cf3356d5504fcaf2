"""What the tests of kernels do with artifacts of GPUs: call them, assemble PTX."""

import _ctypes
import ctypes
import math
import os
import re
import shutil
import subprocess


# Where kernels run, by the kind of target: in the simulator, and as PTX that the
# driver of TILEFARM_CUDA_DRIVER executes (fake_cuda.h).
KINDS = ("sim", "cuda")


def largest_error(expected, actual):
    """Of two sequences of numbers; infinite where one is NaN."""
    differences = (abs(a - b) for a, b in zip(expected, actual, strict=True))
    return max(math.inf if d != d else d for d in differences)


def call(path, *arguments):
    """Empty, or how the call of the artifact's `main` failed."""
    library = ctypes.CDLL(os.path.abspath(path))
    library.tilefarm_main_error.restype = ctypes.c_char_p
    status = library.tilefarm_main(*arguments)
    failure = library.tilefarm_main_error().decode()
    _ctypes.dlclose(library._handle)
    return "" if status == 0 else failure or f"status {status}"


def find_ptxas():
    """None where it is not installed."""
    return shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")


def check_ptx(ptx, what, counts, has):
    """`counts`: texts and how often they occur; `has`: whether they do."""
    for text, count in counts:
        if ptx.count(text) != count:
            raise AssertionError(f"{what}: {ptx.count(text)} x {text}")
    for text, wanted in has:
        if (text in ptx) != wanted:
            raise AssertionError(f"{what}: {text}")


def assemble(ptxas, ptx, model, name):
    """Prints the registers of the kernel; raises if it spills some, or if a
    warning (C75..) says that products of warpgroups lose their registers."""
    with open("kernel.ptx", "w") as file:
        file.write(ptx)
    made = subprocess.run([ptxas, "-v", "-arch=" + model, "kernel.ptx", "-o",
                           "kernel.cubin"], capture_output=True, text=True)
    report = made.stdout + made.stderr
    if (made.returncode != 0 or "C75" in report or
            "0 bytes stack frame, 0 bytes spill stores" not in report):
        raise AssertionError(f"{name}, {model}: {report}")
    print(f"{name}, {model}:", re.search(r"Used \d+ registers", report)[0],
          flush=True)
