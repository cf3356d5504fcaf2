"""Convolutions of the suite with activations in nChw16c.

Channels are in blocks of 16: activations are [n, c / 16, h, w, 16], weights
[out / 16, in / 16, height, width, 16 in, 16 out] (OIhw16i16o), depthwise
weights [c / 16, height, width, 16]. An image of three channels stays in NHWC.
Weights are constant, as in NHWC: either side may pack them ahead of time.
"""

import programs

BLOCK = 16


def conv(name, size, kernel, stride, cin, cout, depthwise=False):
    """Padding (kernel - 1) / 2, bias and relu."""
    pad = (kernel - 1) // 2
    out = (size + 2 * pad - kernel) // stride + 1
    ps = size + 2 * pad
    blocked = cin % BLOCK == 0
    into, outof = cin // BLOCK, cout // BLOCK

    def activations(height):
        return ([1, into, height, height, BLOCK] if blocked
                else [1, height, height, cin])

    if depthwise:
        weight = [outof, kernel, kernel, BLOCK]
    elif blocked:
        weight = [outof, into, kernel, kernel, BLOCK, BLOCK]
    else:
        weight = [outof, kernel, kernel, cin, BLOCK]
    result = [1, outof, out, out, BLOCK]
    parameters = [("data", activations(size)), ("weight", weight),
                  ("bias", [cout]), ("out", result)]
    body = []
    source = "data"
    if pad:
        source = "padded"
        at = "vn, vb, {}, {}, vi" if blocked else "vn, {}, {}, vi"
        axes = [("n", 1, "S"), ("b", into, "S"), ("h", ps, "S"),
                ("w", ps, "S"), ("i", BLOCK if blocked else cin, "S")]
        if not blocked:
            del axes[1]
        body += [programs._alloc("padded", activations(ps))]
    body += [programs._alloc("sum", result), programs._alloc("biased", result)]
    if pad:
        body += programs._block("padded", axes, [
            f"padded[{at.format('vh', 'vw')}] = T.if_then_else(",
            f"    {pad} <= vh and vh < {size + pad} and "
            f"{pad} <= vw and vw < {size + pad},",
            f"    data[{at.format(f'vh - {pad}', f'vw - {pad}')}],",
            "    T.float32(0),", ")"])
    spatial = [("n", 1, "S"), ("h", out, "S"), ("w", out, "S"),
               ("ob", outof, "S"), ("oi", BLOCK, "S")]
    axes = spatial + [("rh", kernel, "R"), ("rw", kernel, "R")]
    scale = f" * {stride}" if stride > 1 else ""
    place = f"vh{scale} + vrh, vw{scale} + vrw"
    if depthwise:
        operands = (f"{source}[vn, vob, {place}, voi] * "
                    "weight[vob, vrh, vrw, voi]")
    elif blocked:
        axes = (spatial + [("rb", into, "R")] + axes[len(spatial):]
                + [("ri", BLOCK, "R")])
        operands = (f"{source}[vn, vrb, {place}, vri] * "
                    "weight[vob, vrb, vrh, vrw, vri, voi]")
    else:
        axes = axes + [("ri", cin, "R")]
        operands = (f"{source}[vn, {place}, vri] * "
                    "weight[vob, vrh, vrw, vri, voi]")
    here = "vn, vob, vh, vw, voi"
    body += programs._block("conv", axes, [
        f"sum[{here}] = sum[{here}] + {operands}"],
        f"sum[{here}] = T.float32(0)")
    body += programs._block("biased", spatial, [
        f"biased[{here}] = sum[{here}] + bias[vob * {BLOCK} + voi]"])
    body += programs._block("relu", spatial, [
        f"out[{here}] = T.max(biased[{here}], T.float32(0))"])
    shapes = [d for _, d in parameters]
    return programs.Entry(
        name + "_nChw16c",
        programs._module("conv2d", parameters, body, weights=(1,)),
        "conv2d", shapes,
        2.0 * out * out * cout * kernel * kernel * (1 if depthwise else cin),
        4.0 * programs._elements(shapes),
        dict(kind="conv", size=size, kernel=kernel, stride=stride, pad=pad,
             cin=cin, cout=cout, out=out, depthwise=depthwise, blocked=True),
        weights=(1,))
