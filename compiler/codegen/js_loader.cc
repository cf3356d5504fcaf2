#include "compiler/codegen/js_loader.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::codegen {
namespace {

// What both loaders share.
constexpr char kCommon[] = R"(
const single = (f) => (...x) => Math.fround(f(...x));
const halfToEven = (x) => {
  const low = Math.floor(x), rest = x - low;
  const up = rest > 0.5 || (rest === 0.5 && low % 2 !== 0);
  const y = up ? low + 1 : low;
  return y === 0 ? (x < 0 || Object.is(x, -0) ? -0 : 0) : y;
};
// By its series, or by the continued fraction of erfc (DLMF 7.6.1, 7.9.2).
const erf = (x) => {
  const a = Math.abs(x);
  if (!(a < 6)) return Math.sign(x);
  if (a < 2.5) {
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); ++n) {
      term *= -x * x / n;
      sum += term / (2 * n + 1);
    }
    return 2 / Math.sqrt(Math.PI) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; --n) fraction = n / 2 / (a + fraction);
  const rest = Math.exp(-a * a) / Math.sqrt(Math.PI) / (a + fraction);
  return Math.sign(x) * (1 - rest);
};
const doubles = {
  erf,
  acos: Math.acos, asin: Math.asin, atan: Math.atan, atan2: Math.atan2,
  ceil: Math.ceil, cos: Math.cos, cosh: Math.cosh, exp: Math.exp,
  exp10: (x) => 10 ** x, exp2: (x) => 2 ** x, expm1: Math.expm1,
  floor: Math.floor,
  fmax: (x, y) => (x !== x ? y : y !== y ? x : Math.max(x, y)),
  fmin: (x, y) => (x !== x ? y : y !== y ? x : Math.min(x, y)),
  fmod: (x, y) => x % y, ldexp: (x, n) => x * 2 ** n, log: Math.log,
  log10: Math.log10, log1p: Math.log1p, log2: Math.log2,
  nearbyint: halfToEven, pow: Math.pow, rint: halfToEven,
  round: (x) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5),
  roundeven: halfToEven, sin: Math.sin, sinh: Math.sinh, sqrt: Math.sqrt,
  tan: Math.tan, tanh: Math.tanh, trunc: Math.trunc,
};
// The functions of C's libm that the module may import.
const env = {};
for (const [name, f] of Object.entries(doubles)) {
  env[name] = f;
  env[`${name}f`] = single(f);
}

// The module's exports. `source`: its bytes, a URL, or a WebAssembly.Module;
// without one, the file beside this one whose name ends in .wasm.
async function instantiate(source) {
  let code = source ?? import.meta.url.replace(/\.mjs(?=$|[?#])/, '.wasm');
  if (typeof code === 'string' || code instanceof URL) {
    const url = new URL(code, import.meta.url);
    if (url.protocol === 'file:') {
      const { readFile } = await import('node:fs/promises');
      code = await readFile(url);
    } else {
      const response = await fetch(url);
      if (!response.ok) throw new Error(`${url}: ${response.status}`);
      code = await response.arrayBuffer();
    }
  }
  if (!(code instanceof WebAssembly.Module)) {
    code = await WebAssembly.compile(code);
  }
  return (await WebAssembly.instantiate(code, { env })).exports;
}

// float16 and bfloat16 are their bits, bool is 0 or 1.
const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array,
  bfloat16: Uint16Array, int8: Int8Array, int16: Int16Array,
  int32: Int32Array, int64: BigInt64Array, uint8: Uint8Array,
  uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
  bool: Uint8Array,
};

// Room for a tensor in the module's memory.
class Room {
  constructor(exports, label, dtype, elements) {
    this.exports = exports;
    this.label = label;
    this.type = arrays[dtype];
    this.elements = elements;
    const bytes = elements * this.type.BYTES_PER_ELEMENT;
    this.at = exports.tilefarm_alloc(bytes) >>> 0;
    if (this.at === 0) throw new Error(`${label}: no memory for ${bytes} bytes`);
  }
  // Valid until the module's memory grows.
  view() {
    return new this.type(this.exports.memory.buffer, this.at, this.elements);
  }
  set(array) {
    if (!(array instanceof this.type) || array.length !== this.elements) {
      throw new TypeError(`${this.label} must be a ${this.type.name} of ` +
                          `${this.elements} elements`);
    }
    this.view().set(array);
  }
  free() {
    this.exports.tilefarm_free(this.at);
  }
}
)";

constexpr char kKernels[] = R"(
function call(exports, name, parameters, given) {
  if (given.length !== parameters.length) {
    throw new TypeError(`${name} has ${parameters.length} parameters, not ` +
                        `${given.length}`);
  }
  const rooms = [];
  try {
    parameters.forEach((p, i) => {
      rooms.push(new Room(exports, `${name}: ${p.name}`, p.dtype, p.elements));
      rooms[i].set(given[i]);
    });
    if (exports[name](...rooms.map((room) => room.at)) !== 0) {
      throw new Error(`${name}: no memory for workspace`);
    }
    parameters.forEach((p, i) => {
      if (p.written) given[i].set(rooms[i].view());
    });
  } finally {
    for (const room of rooms.reverse()) room.free();
  }
}

export async function load(source) {
  const exports = await instantiate(source);
  return Object.fromEntries(Object.entries(functions).map(
    ([name, parameters]) =>
      [name, (...given) => call(exports, name, parameters, given)]));
}
)";

constexpr char kModel[] = R"(
// By the numbers of ONNX's TensorProto.DataType.
const dtypes = {
  1: 'float32', 2: 'uint8', 3: 'int8', 4: 'uint16', 5: 'int16', 6: 'int32',
  7: 'int64', 9: 'bool', 10: 'float16', 11: 'float64', 12: 'uint32',
  13: 'uint64', 16: 'bfloat16',
};

function text(exports, at) {
  const bytes = new Uint8Array(exports.memory.buffer, at >>> 0);
  return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
}

class Model {
  #exports;
  #instance;
  #rooms = {};
  #tables = {};

  constructor(exports) {
    this.#exports = exports;
    this.inputs = this.#describe('input');
    this.outputs = this.#describe('output');
    const place = new Room(exports, 'model', 'uint32', 1);
    const status = exports[`${symbol}_create`](0, place.at);
    this.#instance = place.view()[0];
    place.free();
    if (status !== 0) throw this.#error();
    for (const kind of ['input', 'output']) {
      const tensors = this[`${kind}s`];
      this.#rooms[kind] = tensors.map((t) => new Room(
        exports, `${kind} ${t.name}`, t.dtype,
        t.shape.reduce((a, b) => a * b, 1)));
      this.#tables[kind] = new Room(exports, kind, 'uint32', tensors.length);
      this.#tables[kind].view().set(this.#rooms[kind].map((room) => room.at));
    }
  }

  #error() {
    return new Error(text(this.#exports, this.#exports[`${symbol}_error`]()));
  }

  // Names, dtypes and shapes.
  #describe(kind) {
    const count = this.#exports[`${symbol}_${kind}s`]();
    return Array.from({ length: count }, (_, i) => {
      const at = this.#exports[`${symbol}_${kind}`](i) >>> 0;
      const { buffer } = this.#exports.memory;
      // struct { const char* name; int32_t dtype, rank; const int64_t* shape; }
      const [name, dtype, rank, shape] = new Uint32Array(buffer, at, 4);
      const extents = new BigInt64Array(buffer, shape, rank);
      return { name: text(this.#exports, name), dtype: dtypes[dtype],
               shape: Array.from(extents, Number) };
    });
  }

  // From { input name: typed array } to { output name: typed array }.
  run(given) {
    this.inputs.forEach(({ name }, i) => {
      this.#rooms.input[i].set(given[name]);
    });
    const status = this.#exports[`${symbol}_run`](
      this.#instance, this.#tables.input.at, this.#tables.output.at);
    if (status !== 0) throw this.#error();
    return Object.fromEntries(this.outputs.map(
      ({ name }, i) => [name, this.#rooms.output[i].view().slice()]));
  }

  // Gives its memory back to the module; it must not be used afterwards.
  destroy() {
    this.#exports[`${symbol}_destroy`](this.#instance);
    for (const kind of ['input', 'output']) {
      for (const room of this.#rooms[kind]) room.free();
      this.#tables[kind].free();
    }
  }
}

export async function load(source) {
  return new Model(await instantiate(source));
}
)";

// From the pointer to the last element.
int64_t Elements(const ir::BufferNode& buffer) {
  if (buffer.strides.empty()) return buffer.elem_offset + buffer.num_elements();
  int64_t last = buffer.elem_offset;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    last += (buffer.shape[d] - 1) * buffer.strides[d];
  }
  return last + 1;
}

std::set<const ir::BufferNode*> Written(const ir::PrimFunc& function) {
  std::set<const ir::BufferNode*> written;
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    if (const auto* store = ir::As<ir::StoreNode>(stmt)) {
      written.insert(store->buffer.get());
    }
    return true;
  });
  return written;
}

}  // namespace

std::string JsKernelLoader(std::span<const LoweredFunction> functions) {
  std::string text =
      "// Generated by Tilefarm. const kernels = await load();\n"
      "// kernels.NAME(...) takes a typed array for each parameter, dense and\n"
      "// row-major, and fills those that it writes.\n"
      "const functions = {\n";
  for (const LoweredFunction& function : functions) {
    const auto written = Written(*function.function);
    absl::StrAppend(&text, "  ", function.symbol, ": [\n");
    for (const ir::Buffer& buffer : function.function->params) {
      absl::StrAppend(
          &text, "    { name: '", buffer->name, "', dtype: '",
          buffer->dtype.ToString(), "', elements: ", Elements(*buffer),
          written.contains(buffer.get()) ? ", written: true },\n" : " },\n");
    }
    absl::StrAppend(&text, "  ],\n");
  }
  absl::StrAppend(&text, "};\n", kCommon, kKernels);
  return text;
}

std::string JsModelLoader(const std::string& symbol) {
  return absl::StrCat(
      "// Generated by Tilefarm. const model = await load();\n"
      "// model.run({ NAME: typed array }) gives { NAME: typed array };\n"
      "// model.inputs and model.outputs say which names, dtypes and shapes.\n"
      "const symbol = '",
      symbol, "';\n", kCommon, kModel);
}

}  // namespace tilefarm::codegen
