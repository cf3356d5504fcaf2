#!/usr/bin/env python3
"""sample_tvm.py OUT [--kind cuda|llvm] [--traces N] [NAME ...]: operators of topi
with their results, traces that TVM's design space for the target draws and what
they make of the programs, and (cuda) the kernels of dlight's default rules, in the
form of tests/gpu/tvm/. With TILEFARM_PRINTED_SET=OUT, printed_traces_test and others
take these instead of the printed set.

TVM is no dependency of Tilefarm; a Python that has it (tests/perf/vs_tvm.py says
how to make one) runs this. VerifyGPUCode refuses most of what the space draws, so
that an operator takes seconds to minutes.
"""

import argparse
import os
import random

import numpy
import tvm
from tvm import s_tir, te, topi
from tvm.s_tir import dlight, meta_schedule

LIMITS = {"arch": "sm_80", "max_shared_memory_per_block": 49152,
          "max_threads_per_block": 1024, "thread_warp_size": 32,
          "registers_per_block": 65536}
TARGETS = {"cuda": {"kind": "cuda", **LIMITS},
           "llvm": {"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 16}}
TRIES = 20  # for each trace that is wanted


def operators():
    """Name -> placeholders and results."""
    def inputs(*shapes, dtypes=()):
        dtypes = list(dtypes) + ["float32"] * len(shapes)
        return [te.placeholder(shape, dtype, name=f"p{i}")
                for i, (shape, dtype) in enumerate(zip(shapes, dtypes))]

    def of(function, *shapes, dtypes=()):
        arguments = inputs(*shapes, dtypes=dtypes)
        results = function(*arguments)
        return arguments + (list(results) if isinstance(results, (list, tuple))
                            else [results])

    nn = topi.nn
    image = (1, 8, 10, 10)
    return {
        "conv2dnchw": lambda: of(lambda a, w: nn.conv2d_nchw(a, w, 1, 1, 1), image,
                                 (12, 8, 3, 3)),
        "conv1d": lambda: of(lambda a, w: nn.conv1d_ncw(a, w, 1, 1, 1), (2, 5, 17),
                             (7, 5, 3)),
        "conv3d": lambda: of(lambda a, w: nn.conv3d_ncdhw(a, w, 1, 1, 1, 1),
                             (1, 3, 6, 6, 6), (4, 3, 3, 3, 3)),
        "group": lambda: of(lambda a, w: nn.group_conv2d_nchw(a, w, 1, 1, 1, 4),
                            (1, 16, 9, 9), (24, 4, 3, 3)),
        "conv2dt": lambda: of(lambda a, w: nn.conv2d_transpose_nchw(
            a, w, (2, 2), (1, 1, 1, 1), "float32", (0, 0)), (1, 6, 7, 7),
            (6, 5, 4, 4)),
        "maxpool": lambda: of(lambda a: nn.pool2d(
            a, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"), (1, 6, 13, 13)),
        "globalpool": lambda: of(lambda a: nn.global_pool(a, "avg"), (2, 33, 7, 7)),
        "softmax": lambda: of(nn.softmax, (12, 65)),
        "layernorm": lambda: of(lambda a, g, b: nn.layer_norm(a, g, b, [2]),
                                (2, 12, 48), (48,), (48,)),
        "rmsnorm": lambda: of(lambda a, g: nn.rms_norm(a, g, [2]), (2, 12, 48),
                              (48,)),
        "instancenorm": lambda: of(
            lambda a, g, b: nn.instance_norm(a, g, b, 1, [2, 3]), (2, 16, 5, 5),
            (16,), (16,)),
        "instancenorm512": lambda: of(
            lambda a, g, b: nn.instance_norm(a, g, b, 1, [2, 3]), (2, 4, 16, 32),
            (4,), (4,)),
        "bmm": lambda: of(nn.batch_matmul, (3, 10, 24), (3, 14, 24)),
        "matmul3": lambda: of(topi.matmul, (24, 32), (32, 48)),
        "gemv": lambda: of(nn.dense, (1, 128), (64, 128)),
        "i8dense": lambda: of(lambda a, w: nn.dense(a, w, out_dtype="int32"),
                              (16, 64), (32, 64), dtypes=("int8", "int8")),
        "f16dense": lambda: of(lambda a, w: nn.dense(a, w, out_dtype="float32"),
                               (16, 64), (32, 64), dtypes=("float16", "float16")),
        "attention": lambda: of(
            lambda q, k, v: nn.batch_matmul(nn.softmax(topi.multiply(
                nn.batch_matmul(q, k), 0.25)), v, transpose_b=False),
            (2, 24, 16), (2, 24, 16), (2, 24, 16)),
        "argmax": lambda: of(lambda a: topi.argmax(a, axis=1), (7, 50)),
        "argmax512": lambda: of(lambda a: topi.argmax(a, axis=1), (4, 512)),
        "argmin": lambda: of(lambda a: topi.argmin(a, axis=0), (7, 50)),
        "sum2": lambda: of(lambda a: topi.sum(a, axis=(1, 3), keepdims=True),
                           (4, 6, 5, 8)),
        "sumcols": lambda: of(lambda a: topi.sum(a, axis=0), (64, 37)),
        "cumulative": lambda: of(lambda a: nn.relu(topi.sum(a, axis=1)), (8, 100)),
        "transpose": lambda: of(lambda a: topi.transpose(a, (2, 0, 1)),
                                (10, 12, 14)),
        "transpose2": lambda: of(lambda a: topi.transpose(a, (1, 0)), (64, 48)),
        "where": lambda: of(topi.where, (6, 9), (6, 9), (6, 9), dtypes=("bool",)),
        "lrn": lambda: of(lambda a: nn.lrn(a, 5, 1, 0.0001, 0.75, 2.0),
                          (1, 9, 6, 6)),
        "resize": lambda: of(lambda a: topi.image.resize2d(
            a, (0.0, 0.0, 0.0, 0.0), (14, 15), layout="NCHW", method="linear"),
            (1, 3, 7, 7)),
        "gelu": lambda: of(lambda a: topi.multiply(topi.multiply(a, 0.5), topi.add(
            topi.erf(topi.multiply(a, 0.70710678)), 1.0)), (30, 31)),
    }


def write_program(folder, name, arguments):
    """The module, after its results are written beside it."""
    module = tvm.IRModule({"main": te.create_prim_func(arguments).with_attr(
        "global_symbol", "main")})
    rng = numpy.random.default_rng(3)
    before = []
    for tensor in arguments:
        shape = [int(extent) for extent in tensor.shape]
        dtype = str(tensor.dtype)
        if dtype == "bool":
            before.append(rng.integers(0, 2, shape).astype(bool))
        elif dtype.startswith("int"):
            before.append(rng.integers(0, 100, shape).astype(dtype))
        else:
            before.append(rng.uniform(-1, 1, shape).astype(dtype))
    library = tvm.compile(module, tvm.target.Target({"kind": "llvm"}))
    buffers = [tvm.runtime.tensor(array, tvm.cpu()) for array in before]
    library["main"](*buffers)
    numpy.savez(f"{folder}/{name}.npz", *before,
                *(buffer.numpy() for buffer in buffers))
    with open(f"{folder}/{name}.py", "w") as file:
        file.write(module.script())
    return module


def sample(folder, name, module, kind, wanted):
    """The number of traces that passed all postprocessors."""
    space = meta_schedule.space_generator.PostOrderApply(
        sch_rules=kind, postprocs=kind, mutator_probs=kind)
    meta_schedule.TuneContext(
        mod=module, target=tvm.target.Target(TARGETS[kind]),
        space_generator=space, rand_state=7, num_threads=1)
    sketches = space.generate_design_space(module)
    found = 0
    for attempt in range(wanted * TRIES):
        if found == wanted:
            break
        sketch = random.Random(attempt).choice(sketches)
        schedule = s_tir.Schedule(module, seed=attempt + 1, debug_mask="none",
                                  error_render_level="none")
        try:
            # Without its decisions: draws others.
            s_tir.schedule.Trace(sketch.trace.insts, {}).apply_to_schedule(
                schedule, remove_postproc=True)
            schedule.enter_postproc()
            if not all(step.apply(schedule) for step in space.postprocs):
                continue
        except s_tir.ScheduleError:
            continue
        path = f"{folder}/{name}_{found}"
        with open(path + ".trace.py", "w") as file:
            file.write(str(schedule.trace.simplified(False)))
        with open(path + ".py", "w") as file:
            file.write(schedule.mod.script())
        found += 1
    return found


def write_kernel(folder, name, module):
    gpu = dlight.gpu
    with tvm.target.Target(TARGETS["cuda"]):
        scheduled = dlight.ApplyDefaultSchedule(
            gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(),
            gpu.Transpose(), gpu.Fallback())(module)
    with open(f"{folder}/{name}.py", "w") as file:
        file.write(scheduled.script())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--kind", choices=TARGETS, default="cuda")
    parser.add_argument("--traces", type=int, default=1)
    arguments = parser.parse_args()
    for part in ("small", "schedules", "dlight"):
        os.makedirs(f"{arguments.out}/{part}", exist_ok=True)
    made = operators()
    for name in arguments.names or made:
        module = write_program(arguments.out + "/small", name, made[name]())
        traces = sample(arguments.out + "/schedules", name, module,
                        arguments.kind, arguments.traces)
        if arguments.kind == "cuda":
            write_kernel(arguments.out + "/dlight", name, module)
        print(f"{name}: {traces} traces", flush=True)


if __name__ == "__main__":
    main()
