#!/usr/bin/env python3
"""Makes the input of an ImageNet classifier of a picture.

  python3 image_input.py PICTURE OUTPUT [SIZE]

As torchvision prepares pictures for such models: the shorter side becomes
SIZE * 8 / 7 pixels (SIZE: 224 where not given), the middle SIZE x SIZE pixels are
kept, and each channel is normalised by ImageNet's mean and standard deviation.
OUTPUT gets float32 numbers of shape (1, 3, SIZE, SIZE) in this machine's byte
order, as classify reads them. Needs Pillow (Debian's python3-pil).
"""
import array
import sys

try:
    from PIL import Image
except ImportError:
    Image = None

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def prepare(picture, size):
    """A picture of Pillow's -> array.array("f") of 3 * size * size elements."""
    shorter = size * 8 // 7
    scale = shorter / min(picture.size)
    picture = picture.convert("RGB").resize(
        [max(shorter, round(extent * scale)) for extent in picture.size],
        Image.BILINEAR)
    left, top = ((extent - size) // 2 for extent in picture.size)
    picture = picture.crop((left, top, left + size, top + size))
    result = array.array("f")
    for channel, mean, deviation in zip(picture.split(), MEAN, DEVIATION):
        result.extend((value / 255 - mean) / deviation
                      for value in channel.tobytes())
    return result


def main(arguments):
    if len(arguments) not in (3, 4):
        print("usage: image_input.py PICTURE OUTPUT [SIZE]", file=sys.stderr)
        return 2
    try:
        if Image is None:
            raise ValueError("needs Pillow: install python3-pil")
        size = int(arguments[3]) if len(arguments) == 4 else 224
        if not 1 <= size <= 4096:
            raise ValueError(f"{size} is no size between 1 and 4096")
        with Image.open(arguments[1]) as picture:
            numbers = prepare(picture, size)
        with open(arguments[2], "wb") as file:
            numbers.tofile(file)
    except (OSError, ValueError) as error:
        print(f"image_input: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
