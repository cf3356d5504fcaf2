#!/usr/bin/env python3
"""Times models' libraries on this machine's GPU beside PyTorch, in one run.

    gpu_models.py DIR NAME=LIBRARY.so...

Each library was built by tunec for cuda with --symbol model from DIR/NAME.onnx;
DIR/NAME.npz has inputs in_X and outputs out_X, or every 97th number of them as
outsample97_X. Results of runs with memory of the host and with memory of the
device, by launches and by graphs, are compared with these. Times are medians of
events around runs with memory of the device, ours and PyTorch's model of this
name (random weights; none for unet_128) in turns: as it is, and as a CUDA graph,
of the better of its two layouts for images; TF32 off, then also on.
"""

import ctypes
import os
import statistics
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from models import Options, error_of, pointers, tensors_of  # noqa: E402

torch.backends.cudnn.benchmark = True


def set_tf32(allowed):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


class Model:
    def __init__(self, path, record, stream):
        self.code = ctypes.CDLL(os.path.abspath(path))
        self.code.model_error.restype = ctypes.c_char_p
        self.model, self.stream = ctypes.c_void_p(), ctypes.c_void_p(stream)
        options = Options(ctypes.sizeof(Options), None, 0, 0)
        self.check(self.code.model_create_on(
            ctypes.byref(options), self.stream, ctypes.byref(self.model)))
        self.record = record
        self.inputs, self.outputs = tensors_of(self.code, record)
        self.device_inputs = [torch.from_numpy(x).cuda() for x in self.inputs]
        self.device_outputs = [torch.from_numpy(x).cuda()
                               for x in self.outputs.values()]

    def check(self, status):
        if status:
            raise RuntimeError(self.code.model_error().decode()[:500])

    def run_on_device(self):
        def places(tensors):
            return (ctypes.c_void_p * len(tensors))(
                *[x.data_ptr() for x in tensors])

        self.check(self.code.model_run_on(
            self.model, self.stream, places(self.device_inputs),
            places(self.device_outputs)))

    def run_on_host(self):
        self.check(self.code.model_run(
            self.model, pointers(self.inputs),
            pointers(list(self.outputs.values()))))

    def errors(self):
        """Of launches, the graph's recording, and two of its launches; each from
        poisoned outputs."""
        worst = []
        for run in range(4):
            for x in self.device_outputs:
                x.view(torch.uint8).fill_(255)
            self.run_on_device()
            torch.cuda.synchronize()
            for name, x in zip(self.outputs, self.device_outputs):
                self.outputs[name] = x.cpu().numpy()
            worst.append(error_of(self.outputs, self.record))
            for value in self.outputs.values():
                value.fill(np.nan if value.dtype.kind == "f" else -1)
            self.run_on_host()
            worst.append(error_of(self.outputs, self.record))
        return max(worst)


def peer_of(name, inputs):
    """PyTorch's model as a function without arguments, in each layout."""
    import torchvision
    import transformers
    torch.manual_seed(0)
    if name in ("bert_base_128", "gpt2_64"):
        config = {"attn_implementation": "sdpa"}
        if name == "gpt2_64":
            model = transformers.GPT2LMHeadModel(
                transformers.GPT2Config(use_cache=False, **config))
        else:
            model = transformers.BertModel(transformers.BertConfig(**config))
        model = model.cuda().eval()
        tokens = {"input_ids": inputs[0]}
        if name == "bert_base_128":
            tokens |= {"attention_mask": inputs[1], "token_type_ids": inputs[2]}
        return [lambda: model(**tokens)[0]]
    if not hasattr(torchvision.models, name):
        return []
    runs = []
    for layout in (torch.contiguous_format, torch.channels_last):
        model = getattr(torchvision.models, name)().cuda().eval()
        model = model.to(memory_format=layout)
        image = inputs[0].contiguous(memory_format=layout)
        runs.append(lambda model=model, image=image: model(image))
    return runs


def graph_of(run):
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def timed(run, repeats=15):
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def main():
    folder = sys.argv[1]
    stream = torch.cuda.current_stream().cuda_stream
    for argument in sys.argv[2:]:
        name, library = argument.split("=", 1)
        record = dict(np.load(os.path.join(folder, name + ".npz")))
        try:
            model = Model(library, record, stream)
            error = model.errors()
        except RuntimeError as failure:
            print(f"{name} FAILED {failure}", flush=True)
            continue
        times = {"ours": model.run_on_device}
        with torch.no_grad():
            for tf32 in (False, True):
                set_tf32(tf32)
                for number, run in enumerate(
                        peer_of(name, model.device_inputs)):
                    label = f"{number}{' tf32' if tf32 else ''}"
                    if not tf32:
                        times["torch " + label] = run
                    try:
                        times["graph " + label] = graph_of(run)
                    except RuntimeError as failure:
                        print(name, label, str(failure)[:200], flush=True)
            set_tf32(False)
            for run in times.values():
                timed(run, 3)
            best = {}
            for _ in range(3):
                for label, run in times.items():
                    best[label] = min(timed(run), best.get(label, 1e9))
        print(f"{os.path.basename(library):32s} error {error:.1e} ms " + ", ".join(
            f"{label} {ms:.3f}" for label, ms in best.items()), flush=True)


if __name__ == "__main__":
    main()
