"""tvm_kernels_test.py TUNEC: modules for GPUs as TVM printed them (tests/gpu/tvm/),
compiled as they stand for the simulator and as PTX for the driver of
TILEFARM_CUDA_DRIVER, and the programs that they are of with default schedules.
Results are compared with those of TVM's build for the CPU.
"""

import array
import ast
import ctypes
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import artifacts

FOLDER = pathlib.Path(__file__).resolve().parent / "tvm"
TARGETS = {"sim": "sim:sm_80", "cuda": "cuda:sm_80"}
TOLERANCE = 1e-3  # of the largest value
CODES = {"f4": "f", "f8": "d", "i1": "b", "b1": "b", "i4": "i", "i8": "q",
         "f2": "H"}


def read_npz(path):
    """(dtype, bytes) of arr_0, arr_1, ..."""
    out = []
    with zipfile.ZipFile(path) as file:
        for i in range(len(file.namelist())):
            data = file.read(f"arr_{i}.npy")
            size = int.from_bytes(data[8:10], "little")
            header = ast.literal_eval(data[10:10 + size].decode())
            assert not header["fortran_order"], path
            out.append((header["descr"][1:], bytearray(data[10 + size:])))
    return out


def values(dtype, data):
    return array.array(CODES[dtype], bytes(data)).tolist()


def check(tunec, path, npz, kind, options):
    library = f"{path.stem}_{kind}_{path.parent.name}.so"
    made = subprocess.run([tunec, str(path), "--target", TARGETS[kind], *options,
                           "-o", library], capture_output=True, text=True)
    if made.returncode != 0:
        raise AssertionError(f"{path} {kind}: {made.stderr}")
    arrays = read_npz(npz)
    count = len(arrays) // 2
    memory = [(ctypes.c_char * len(data)).from_buffer(data)
              for _, data in arrays[:count]]
    failure = artifacts.call(library, *(
        ctypes.c_void_p(ctypes.addressof(one)) for one in memory))
    if failure:
        raise AssertionError(f"{path} {kind}: {failure}")
    for i in range(count):
        dtype, wanted = arrays[count + i]
        if dtype == "f2":  # inputs alone
            assert arrays[i][1] == wanted, f"{path} {kind}: buffer {i}"
            continue
        expected = values(dtype, wanted)
        error = artifacts.largest_error(expected, values(dtype, arrays[i][1]))
        largest = max(1.0, max(map(abs, expected)))
        if not error <= TOLERANCE * largest or math.isnan(error):
            raise AssertionError(f"{path} {kind}: buffer {i}: {error}")
    os.remove(library)


def main():
    tunec = os.path.abspath(sys.argv[1])
    checked = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for part, options in (("dlight", ["--as-is"]), ("schedules", ["--as-is"]),
                              ("small", [])):
            for path in sorted((FOLDER / part).glob("*.py")):
                if path.name.endswith(".trace.py"):
                    continue
                name = (path.stem if part != "schedules"
                        else path.stem.rsplit("_", 1)[0])
                for kind in artifacts.KINDS:
                    check(tunec, path, FOLDER / "small" / f"{name}.npz", kind,
                          options)
                    checked += 1
    assert checked > 100, checked
    print(checked, "results are those of TVM")


if __name__ == "__main__":
    main()
