#!/usr/bin/env python3
"""Writes PyTorch's ResNet-50 as ONNX, and the names of its 1,000 classes.

  python3 export_resnet50.py [FOLDER]

FOLDER (where not given: this one) gets resnet50.onnx, whose input is one picture of
224 x 224 pixels, and labels.txt with one class on each line. Needs torch,
torchvision and onnx from PyPI, and downloads the weights once.
"""
import os
import sys

import torch
import torchvision


def main(arguments):
    if len(arguments) > 2:
        print("usage: export_resnet50.py [FOLDER]", file=sys.stderr)
        return 2
    folder = arguments[1] if len(arguments) == 2 else "."
    weights = torchvision.models.ResNet50_Weights.DEFAULT
    model = torchvision.models.resnet50(weights=weights).eval()
    torch.onnx.export(model, torch.zeros(1, 3, 224, 224),
                      os.path.join(folder, "resnet50.onnx"), dynamo=False,
                      input_names=["image"], output_names=["scores"])
    with open(os.path.join(folder, "labels.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in weights.meta["categories"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
