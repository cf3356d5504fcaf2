#!/usr/bin/env python3
"""Times built kernels on this machine's GPU beside PyTorch, in one run.

    gpu_kernels.py SECONDS NAME.so...

Each NAME.so was built by tunec for cuda from NAME.py beside it, or from the
program that NAME begins with (NAME up to the first "_"). The program's name says
what it computes: mm, gelu (a product, bias and GELU), softmax, layernorm, rowsum,
addrelu, transpose, conv (of NCHW and OIHW), nhwc (of NHWC and OHWI), attention
(beside two products and a softmax; "fused" is PyTorch's own kernel). Results are
compared with PyTorch's in float64, before and after the timed runs; outputs are
poisoned. gpu_programs.py writes such programs. Times are medians of events around
single runs after 256 MiB were written, ours and PyTorch's in turn; of
convolutions, PyTorch's time is that of the better of its layouts. A line gives
the largest error over the largest result, times in ms, and PyTorch's over ours;
where memory is the limit, also the time of a copy of as many bytes over ours.
"""

import ctypes
import json
import math
import os
import re
import statistics
import sys
import time

import torch

f = torch.nn.functional
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


def buffers_of(path):
    text = open(path).read()
    signature = text[text.index("def main("):text.index("):\n")]
    return [(name, tuple(int(n) for n in shape.replace(" ", "").strip(",").split(",")), dtype)
            for name, shape, dtype in re.findall(r'(\w+): T\.Buffer\(\(([\d, ]+)\), "(\w+)"\)', signature)]


def convolution(buffers, channels_last):
    def run(x):
        # Height in one layout, width in the other.
        options = {"stride": x[0].shape[2] // buffers[-1][1][2],
                   "padding": (x[1].shape[2] - 1) // 2}
        if not channels_last:
            return f.conv2d(x[0], x[1], **options)
        first = [tensor.permute(0, 3, 1, 2) for tensor in x]
        return f.conv2d(*first, **options).permute(0, 2, 3, 1)

    return run


def operation(name, buffers):
    """What the reference computes, and what is timed."""
    if name.startswith("mm"):
        product = (lambda x: torch.matmul(x[0], x[1].t())) if "_nt" in name else (
            lambda x: torch.matmul(x[0], x[1]))
        if buffers[0][2] == "int8":
            return product, (lambda x: torch._int_mm(x[0], x[1].t() if "_nt" in name else x[1]))
        return product, product
    if name.startswith("attention"):
        def unfused(x):
            scale = x[0].shape[-1] ** -0.5
            scores = torch.matmul(x[0] * scale, x[1].transpose(1, 2))
            return torch.matmul(torch.softmax(scores, -1), x[2])

        return unfused, unfused
    named = {
        "gelu": lambda x: f.gelu(torch.matmul(x[0], x[1]) + x[2].to(x[0].dtype)),
        "softmax": lambda x: torch.softmax(x[0], 1),
        "layernorm": lambda x: f.layer_norm(x[0], (x[0].shape[1],)),
        "rowsum": lambda x: torch.sum(x[0], 1),
        "addrelu": lambda x: torch.relu(x[0] + x[1]),
        "transpose": lambda x: x[0].t().contiguous(),
        "conv": convolution(buffers, channels_last=False),
        "nhwc": convolution(buffers, channels_last=True),
    }
    found = next(named[key] for key in named if name.startswith(key))
    return found, found


def work(name, buffers):
    """Floating-point operations; 0 where memory is the limit."""
    out = buffers[-1][1]
    if name.startswith(("mm", "gelu")):
        return 2 * buffers[0][1][0] * buffers[0][1][1] * out[1]
    if name.startswith("attention"):
        return 4 * out[0] * out[1] * out[1] * out[2]
    if name.startswith(("conv", "nhwc")):
        weights = buffers[1][1]
        return 2 * out[0] * out[1] * out[2] * out[3] * weights[1] * weights[2] * weights[3]
    return 0


flushed = torch.empty(64 << 20, dtype=torch.int32, device="cuda")


def timed(run, repeats=7):
    times = []
    for _ in range(repeats):
        flushed.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def make_inputs(buffers):
    torch.manual_seed(0)
    return [torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8) if dtype == "int8" else
            torch.randn(shape, device="cuda").to(getattr(torch, dtype))
            for _, shape, dtype in buffers[:-1]]


def copy_time(moved):
    """Of a copy that reads and writes so many bytes together."""
    source = torch.empty(moved // 2, dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    return timed(lambda: target.copy_(source))


def main():
    seconds = float(sys.argv[1])
    start = time.time()
    source = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    copy = 2 * source.nbytes / timed(lambda: target.copy_(source)) / 1e6
    del source, target
    print(f"copy {copy:.0f} GB/s", flush=True)
    known = {}
    for path in sys.argv[2:]:
        if time.time() - start > seconds:
            print("no time left for", path)
            break
        name = os.path.basename(path)[:-3]
        program = path[:-3] + ".py"
        if not os.path.exists(program):
            program = os.path.join(os.path.dirname(path), name.split("_")[0] + ".py")
        buffers = buffers_of(program)
        exact, peer = operation(name, buffers)
        key = (tuple(buffers), "_nt" in name)
        if key not in known:
            known.clear()
            torch.cuda.empty_cache()
            inputs = make_inputs(buffers)
            known[key] = inputs, exact([x.double() for x in inputs])
        inputs, want = known[key]
        out = torch.empty(buffers[-1][1], device="cuda", dtype=getattr(torch, buffers[-1][2]))
        library = ctypes.CDLL(os.path.abspath(path))
        library.tilefarm_main_error.restype = ctypes.c_char_p
        arguments = [ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)]
        arguments += [ctypes.c_void_p(x.data_ptr()) for x in inputs + [out]]

        peers = [lambda: peer(inputs)]
        note = ""
        if name.startswith("attention"):
            heads = [x.unsqueeze(0) for x in inputs]
            fused = timed(lambda: f.scaled_dot_product_attention(*heads))
            note = f", fused {fused:.4f}"
        if name.startswith("conv"):
            last = [x.contiguous(memory_format=torch.channels_last) for x in inputs]
            peers.append(lambda: peer(last))

        def run():
            status = library.tilefarm_main_on(*arguments)
            if status != 0:
                raise RuntimeError(library.tilefarm_main_error().decode()[:300])

        def error():
            out.view(torch.uint8).fill_(255)
            run()
            torch.cuda.synchronize()
            found = ((out.double() - want).abs().max() / want.abs().max()).item()
            return found if math.isfinite(found) else math.inf

        try:
            wrong = error()
            ours, theirs = [], []
            for _ in range(2):
                ours.append(timed(run))
                theirs.append(min(timed(one) for one in peers))
            wrong = max(wrong, error())
        except RuntimeError as failure:
            print(f"{name} FAILED {failure}", flush=True)
            continue
        operations = work(name, buffers)
        bytes_moved = sum(x.nbytes for x in inputs + [out])
        speed = (f"{operations / min(ours) / 1e9:.1f} TFLOPS" if operations else
                 f"{bytes_moved / min(ours) / 1e6:.0f} GB/s, "
                 f"{copy_time(bytes_moved) / min(ours):.2f} of a copy of as many, "
                 f"{bytes_moved / min(ours) / 1e6 / copy:.2f} of one of 256 MiB")
        print(f"{name:42s} error {wrong:.1e} ms {min(ours):.4f} torch {min(theirs):.4f} "
              f"ratio {min(theirs) / min(ours):.3f} {speed}{note}", flush=True)


if __name__ == "__main__":
    main()
