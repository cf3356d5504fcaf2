#!/usr/bin/env python3
"""Models of torchvision, timm and transformers with random weights, as PyTorch
exports them, and what the compiler makes of them beside PyTorch's results.

  sample_pytorch.py list [KIND]        names, all or of torchvision, timm, transformers
  sample_pytorch.py export DIR [NAME...] [--half]
                                       NAME.onnx; NAME.npz (models.py): inputs, results
  sample_pytorch.py check DIR [NAME...] [--tunec FILE] [--target cuda:sm_90a]
                                       runs them with tunec; prints errors over the
                                       largest result, and fails if one is too large

Needs numpy; export also torch, torchvision, timm, transformers, onnx and onnxscript
(PyPI). An export takes 5 to 30 s, 5 GB hold all. check runs code for CUDA without a
GPU, by the tests' driver in the same build; TILEFARM_CUDA_DRIVER names another one.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]

TORCHVISION = """alexnet convnext_tiny convnext_base deeplabv3_mobilenet_v3_large
deeplabv3_resnet50 densenet121 densenet161 efficientnet_b0 efficientnet_b2
efficientnet_v2_s fcn_resnet50 googlenet inception_v3 lraspp_mobilenet_v3_large maxvit_t
mnasnet0_5 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small r2plus1d_18 r3d_18
regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x0_5
shufflenet_v2_x1_0 squeezenet1_0 squeezenet1_1 swin_t swin_v2_t vgg11 vgg16_bn vit_b_16
vit_b_32 wide_resnet50_2""".split()

TIMM = """beit_base_patch16_224 botnet26t_256 cait_xxs24_224 coat_tiny coatnet_nano_rw_224
convit_tiny convmixer_768_32 crossvit_9_240 cs3darknet_s cspresnet50 davit_tiny
deit_tiny_patch16_224 dla34 dpn68 eca_resnet33ts edgenext_small efficientformer_l1
efficientformerv2_s0 ese_vovnet19b_dw eva02_tiny_patch14_224 fastvit_t8 fbnetc_100
focalnet_tiny_srf gcresnet33ts gernet_s ghostnet_100 gmlp_s16_224 halonet26t hardcorenas_a
hgnet_tiny hrnet_w18_small inception_next_tiny lambda_resnet26t lcnet_050 levit_128s
mambaout_femto maxvit_nano_rw_256 mixer_s32_224 mixnet_s mobilenetv4_conv_small
mobileone_s0 mobilevit_xxs mobilevitv2_050 mvitv2_tiny nest_tiny nfnet_l0
nextvit_small pit_ti_224 poolformer_s12 pvt_v2_b0 regnety_002 repvgg_a0 res2net50_14w_8s
resmlp_12_224 resnest14d rexnet_100 samvit_base_patch16 selecsls42b sequencer2d_s
skresnet18 swinv2_cr_tiny_224 tiny_vit_5m_224 tinynet_e tnt_s_patch16_224 tresnet_m
twins_svt_small vgg11 visformer_tiny volo_d1_224 vit_tiny_patch16_224 xception41
xcit_nano_12_p16_224""".split()

# Name -> class, class of its configuration, options, kinds of inputs.
TRANSFORMERS = {
    "albert": ("AlbertModel", "AlbertConfig", dict(
        hidden_size=256, num_attention_heads=4, intermediate_size=512), "ids mask"),
    "bert": ("BertModel", "BertConfig", dict(num_hidden_layers=3), "ids mask"),
    "bloom": ("BloomModel", "BloomConfig", dict(
        hidden_size=256, n_layer=2, n_head=8, vocab_size=1000), "ids"),
    "clip_text": ("CLIPTextModel", "CLIPTextConfig", dict(num_hidden_layers=3),
                  "ids"),
    "deberta": ("DebertaModel", "DebertaConfig", dict(
        num_hidden_layers=2, relative_attention=True, pos_att_type=["c2p", "p2c"],
        vocab_size=1000), "ids mask"),
    "distilbert": ("DistilBertModel", "DistilBertConfig", dict(n_layers=3),
                   "ids mask"),
    "electra": ("ElectraModel", "ElectraConfig", dict(num_hidden_layers=3),
                "ids mask"),
    "falcon": ("FalconModel", "FalconConfig", dict(
        hidden_size=256, num_hidden_layers=2, num_attention_heads=4,
        vocab_size=1000), "ids"),
    "fnet": ("FNetModel", "FNetConfig", dict(num_hidden_layers=2, vocab_size=1000),
             "ids"),
    "funnel": ("FunnelBaseModel", "FunnelConfig", dict(
        block_sizes=[1, 1], d_model=128, n_head=2, d_head=64, d_inner=256,
        vocab_size=1000), "ids mask"),
    "gemma": ("GemmaModel", "GemmaConfig", dict(
        hidden_size=256, intermediate_size=512, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=64,
        vocab_size=1000), "ids"),
    "gpt2": ("GPT2Model", "GPT2Config", dict(n_layer=3), "ids"),
    "gpt_neo": ("GPTNeoModel", "GPTNeoConfig", dict(
        hidden_size=256, num_layers=2, num_heads=4, vocab_size=1000,
        attention_types=[[["global", "local"], 1]]), "ids"),
    "gpt_neox": ("GPTNeoXModel", "GPTNeoXConfig", dict(
        hidden_size=256, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=512, vocab_size=1000), "ids"),
    "llama": ("LlamaModel", "LlamaConfig", dict(
        hidden_size=512, intermediate_size=1024, num_hidden_layers=2,
        num_attention_heads=8, num_key_value_heads=2, vocab_size=1000), "ids"),
    "longformer": ("LongformerModel", "LongformerConfig", dict(
        num_hidden_layers=1, attention_window=32, vocab_size=1000), "ids"),
    "mamba": ("MambaModel", "MambaConfig", dict(
        hidden_size=128, num_hidden_layers=1, vocab_size=1000), "ids"),
    "mobilebert": ("MobileBertModel", "MobileBertConfig", dict(
        num_hidden_layers=3), "ids mask"),
    "mpnet": ("MPNetModel", "MPNetConfig", dict(num_hidden_layers=2), "ids mask"),
    "opt": ("OPTModel", "OPTConfig", dict(
        hidden_size=256, num_hidden_layers=2, ffn_dim=512, num_attention_heads=4,
        word_embed_proj_dim=256, vocab_size=1000), "ids"),
    "phi": ("PhiModel", "PhiConfig", dict(
        hidden_size=256, intermediate_size=512, num_hidden_layers=2,
        num_attention_heads=4, vocab_size=1000), "ids"),
    "qwen2": ("Qwen2Model", "Qwen2Config", dict(
        hidden_size=256, intermediate_size=512, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, vocab_size=1000), "ids"),
    "roberta": ("RobertaModel", "RobertaConfig", dict(num_hidden_layers=2),
                "ids mask"),
    "segformer": ("SegformerModel", "SegformerConfig", {}, "image"),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", dict(
        num_hidden_layers=2), "ids mask"),
    "t5_encoder": ("T5EncoderModel", "T5Config", dict(
        num_layers=2, vocab_size=1000), "ids mask"),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", dict(num_hidden_layers=2),
                 "sound"),
    "whisper_encoder": ("whisper", "WhisperConfig", dict(
        encoder_layers=2, d_model=256, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=512), "mels"),
    "xlnet": ("XLNetModel", "XLNetConfig", dict(
        n_layer=2, d_model=256, n_head=4, d_inner=512, vocab_size=1000), "ids"),
    "yolos": ("YolosModel", "YolosConfig", dict(
        hidden_size=192, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=384, image_size=[224, 224]), "image"),
}

RECURRENT = ["lstm", "gru", "bilstm", "rnn"]


def names_of(kind=None):
    kinds = {"torchvision": TORCHVISION, "timm": [f"timm_{n}" for n in TIMM],
             "transformers": list(TRANSFORMERS), "recurrent": RECURRENT}
    return [name for key, names in kinds.items() if kind in (None, key)
            for name in names]


def image_of(torch, size, channels=3):
    return torch.randn(1, channels, size, size)


def recurrent(torch, name):
    """Token by token sequences of 24 vectors of 96."""
    kinds = {"lstm": torch.nn.LSTM, "bilstm": torch.nn.LSTM, "gru": torch.nn.GRU,
             "rnn": torch.nn.RNN}
    layer = kinds[name](96, 128, num_layers=2, batch_first=True,
                        bidirectional=name == "bilstm")

    class Sequence(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x)[0]

    return Sequence(), (torch.randn(1, 24, 96),)


def model_of(torch, name):
    """The model, and one set of inputs."""
    if name in RECURRENT:
        return recurrent(torch, name)
    if name in TRANSFORMERS:
        import transformers
        kind, config, options, inputs = TRANSFORMERS[name]
        config = getattr(transformers, config)(**options)
        config.use_cache = False
        config.return_dict = True
        if kind == "whisper":
            model = transformers.WhisperModel(config).encoder
        else:
            model = getattr(transformers, kind)(config)
        length = 64
        given = {"ids": {"input_ids": torch.randint(
                     5, min(getattr(config, "vocab_size", 1000), 1000),
                     (1, length))},
                 "mask": {"attention_mask": torch.ones(
                     1, length, dtype=torch.int64)},
                 "image": {"pixel_values": image_of(torch, 224)},
                 "sound": {"input_values": torch.randn(1, 8000)},
                 "mels": {"input_features": torch.randn(
                     1, getattr(config, "num_mel_bins", 80), 3000)}}
        keywords = {}
        for each in inputs.split():
            keywords.update(given[each])

        class FirstResult(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, *values):
                return self.model(**dict(zip(keywords, values)))[0]

        return FirstResult(), tuple(keywords.values())
    if name.startswith("timm_"):
        import timm
        model = timm.create_model(name[5:], pretrained=False)
        size = model.default_cfg["input_size"][-1]
        return model, (image_of(torch, size),)
    import torchvision
    if name in ("r3d_18", "r2plus1d_18"):
        return (getattr(torchvision.models.video, name)(weights=None),
                (torch.randn(1, 3, 8, 112, 112),))
    for family in (torchvision.models, torchvision.models.segmentation):
        if hasattr(family, name):
            options = {"weights": None}
            if family is not torchvision.models:
                options["weights_backbone"] = None
            if name in ("googlenet", "inception_v3"):
                options["init_weights"] = False
            return (getattr(family, name)(**options),
                    (image_of(torch, 299 if name == "inception_v3" else 224),))
    raise ValueError(f"{name}: no such model")


def randomize(torch, model):
    """Weights as far from the initial zeros and ones as those of a trained model:
    no branch is multiplied by zero, and no normalisation is the identity."""
    for key, value in list(model.named_parameters()) + list(model.named_buffers()):
        if not value.dtype.is_floating_point:
            continue
        if key.endswith("running_var"):
            value.data.uniform_(0.5, 1.5)
        elif key.endswith("running_mean"):
            value.data.normal_(0, 0.1)
        elif value.dim() <= 1 and key.endswith("weight"):
            value.data.uniform_(0.7, 1.3)
        elif value.dim() <= 1:
            value.data.normal_(0, 0.1)


def export(arguments):
    import torch
    os.makedirs(arguments.dir, exist_ok=True)
    for name in arguments.names or names_of():
        torch.manual_seed(0)
        base = os.path.join(arguments.dir, name)
        try:
            model, inputs = model_of(torch, name)
            model = model.eval()
            randomize(torch, model)
            if arguments.half:
                model = model.half()
                inputs = tuple(x.half() if x.dtype.is_floating_point else x
                               for x in inputs)
            with torch.no_grad():
                results = model(*inputs)
                program = torch.onnx.export(model, inputs, dynamo=True,
                                            verbose=False)
        except Exception as error:  # what one version of a package lacks
            print(f"{name}: {type(error).__name__}: {str(error)[:120]}", flush=True)
            continue
        program.save(base + ".onnx", external_data=False)
        if isinstance(results, dict):
            results = list(results.values())
        if not isinstance(results, (tuple, list)):
            results = [results]
        graph = program.model.graph
        record = {"in_" + value.name: x.numpy()
                  for value, x in zip(graph.inputs, inputs)}
        record |= {"out_" + value.name: x.numpy()
                   for value, x in zip(graph.outputs, results)}
        np.savez(base + ".npz", **record)
        print(f"{name}: {len(graph)} nodes", flush=True)


def error_of(folder, record):
    """The largest error over the largest value, over the results; infinite where
    one is not a number."""
    worst = 0.0
    for key, wanted in record.items():
        if not key.startswith("out_"):
            continue
        got = np.load(folder / (key[4:] + ".npy"))
        if got.shape != wanted.shape:
            return float("inf")
        wanted = wanted.astype(np.float64)
        error = np.abs(got - wanted).max() / (np.abs(wanted).max() or 1)
        worst = max(worst, float(error) if np.isfinite(error) else float("inf"))
    return worst


def check(arguments):
    names = arguments.names or sorted(
        path.stem for path in pathlib.Path(arguments.dir).glob("*.onnx"))
    # The code for the GPU stays PTX, which that driver executes.
    driver = pathlib.Path(arguments.tunec).parents[1] / "tests/gpu/new/libcuda.so.1"
    env = {"TILEFARM_CUDA_DRIVER": str(driver), "TILEFARM_PTXAS": "",
           "TILEFARM_NVJITLINK": "", **os.environ}
    failed = []
    for name in names:
        base = os.path.join(arguments.dir, name)
        record = dict(np.load(base + ".npz"))
        half = any(x.dtype == np.float16 for x in record.values())
        if not all(np.isfinite(x).all() for x in record.values()):
            print(f"{name}: PyTorch's own results are not finite", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            command = [arguments.tunec, base + ".onnx", "--target",
                       arguments.target, "--save", str(folder), *arguments.options]
            for key, value in record.items():
                if key.startswith("in_"):
                    np.save(folder / (key + ".npy"), value)
                    command += ["--run", f"{key[3:]}={folder / (key + '.npy')}"]
            run = subprocess.run(command, capture_output=True, text=True, env=env)
            if run.returncode != 0:
                failed.append(name)
                reason = (run.stderr.strip().split("\n") or [""])[-1]
                print(f"{name}: FAILED {run.returncode}: {reason[-300:]}", flush=True)
                continue
            error = error_of(folder, record)
        limit = arguments.limit or (3e-2 if half else 1e-4)
        if not error <= limit:
            failed.append(name)
        print(f"{name}: {error:.2g}{'' if error <= limit else ' WRONG'}", flush=True)
    print(f"{len(names) - len(failed)} of {len(names)}; failed: "
          f"{' '.join(failed) or 'none'}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    of_list = commands.add_parser("list")
    of_list.add_argument("kind", nargs="?")
    of_list.set_defaults(run=lambda a: print("\n".join(names_of(a.kind))))
    of_export = commands.add_parser("export")
    of_export.add_argument("dir")
    of_export.add_argument("names", nargs="*")
    of_export.add_argument("--half", action="store_true")
    of_export.set_defaults(run=export)
    of_check = commands.add_parser("check")
    of_check.add_argument("dir")
    of_check.add_argument("names", nargs="*")
    of_check.add_argument("--tunec", default=str(ROOT / "build/release/bin/tunec"))
    of_check.add_argument("--target", default="cuda:sm_90a")
    of_check.add_argument("--limit", type=float)
    of_check.add_argument("--options", nargs=argparse.REMAINDER, default=[])
    of_check.set_defaults(run=check)
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
