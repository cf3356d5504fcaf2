// Calls the kernels of kernels.py and compares them with JavaScript.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { load } from './kernels_module.mjs';

const kernels = await load();

// Deterministic numbers in [-1, 1).
let state = 1;
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 31 - 1;
};
const randoms = (count) => Float32Array.from({ length: count }, random);

// --- A product and its workspace ---
{
  const [m, n, k] = [37, 50, 65];
  const a = randoms(m * k), b = randoms(k * n);
  const c = new Float32Array(m * n);
  kernels.mm_relu(a, b, c);
  for (let i = 0; i < m; ++i) {
    for (let j = 0; j < n; ++j) {
      let sum = 0;
      for (let l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      const want = Math.max(sum, 0);
      assert(Math.abs(c[i * n + j] - want) < 1e-5, `C[${i}, ${j}]`);
    }
  }
  // Only what a kernel writes is copied back.
  const before = a.slice();
  kernels.mm_relu(a, b, c);
  assert.deepEqual(a, before);
}

// Memory that a call does not give back would not last for these.
{
  const a = randoms(512 * 512);
  const sums = new Float32Array(512);
  for (let call = 0; call < 4500; ++call) kernels.row_sums(a, sums);
  for (let i = 0; i < 512; ++i) {
    let sum = 0;
    for (let j = 0; j < 512; ++j) sum += 2 * a[i * 512 + j];
    assert(Math.abs(sums[i] - sum) < 1e-3, `S[${i}]`);
  }
}

// --- Elementary functions ---
// By Simpson's rule.
const erf = (x) => {
  const steps = 2000, h = x / steps;
  let sum = 1 + Math.exp(-x * x);
  for (let i = 1; i < steps; ++i) {
    sum += (i % 2 ? 4 : 2) * Math.exp(-((i * h) ** 2));
  }
  return 2 / Math.sqrt(Math.PI) * sum * h / 3;
};
const halfToEven = (x) =>
  Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x);
const compare = (got, xs, functions, tolerance) => {
  functions.forEach((f, row) => xs.forEach((x, i) => {
    const y = got[row * xs.length + i], want = f(x);
    assert(Math.abs(y - want) <= tolerance * Math.max(1, Math.abs(want)),
           `function ${row} of ${x} is ${y} instead of ${want}`);
  }));
};
const points = Array.from({ length: 100 }, (_, i) => (i - 50) / 8);
{
  const xs = Float32Array.from(points), ys = new Float32Array(14 * 100);
  kernels.functions(xs, ys);
  compare(ys, xs, [
    Math.exp, Math.tanh, erf, (x) => Math.log(Math.abs(x) + 1), Math.sin,
    Math.tan, (x) => (Math.abs(x) + 0.5) ** 1.5,
    (x) => Math.sqrt(Math.abs(x)), Math.floor, halfToEven, Math.atan, Math.sinh,
    (x) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5),
    (x) => 1 / (1 + Math.exp(-x)),
  ], 1e-6);
}
{
  const xs = Float64Array.from(points), ys = new Float64Array(5 * 100);
  kernels.doubles(xs, ys);
  compare(ys, xs, [
    Math.exp, erf, (x) => Math.atan2(x, 2), (x) => Math.log1p(Math.abs(x)),
    Math.cosh,
  ], 1e-12);
}

// --- Dtypes ---
{
  const count = [...Array(9).keys()];
  const big = count.map(BigInt);
  const given = [
    Int8Array.from(count, (i) => i - 128), Uint8Array.from(count),
    Int16Array.from(count, (i) => i * 5000), Uint16Array.from(count, (i) => i * 100),
    Int32Array.from(count, (i) => i * 400000000),
    Uint32Array.from(count, (i) => i * 100000000),
    BigInt64Array.from(big, (i) => (i - 4n) * 3000000000n),
    BigUint64Array.from(big, (i) => i * 2n ** 61n),
    // 1, 1, ... and 1.5, 1.5, ...
    new Uint16Array(9).fill(0x3c00), new Uint16Array(9).fill(0x3fc0),
    Float64Array.from(count), Uint8Array.from(count, (i) => i % 2),
  ];
  const want = [
    Int8Array.from(given[0], (x) => x - 1), Uint8Array.from(given[1], (x) => x + 250),
    Int16Array.from(given[2], (x) => x * 3), Uint16Array.from(given[3], (x) => x + 65000),
    Int32Array.from(given[4], (x) => Math.imul(x, -7)),
    Uint32Array.from(given[5], (x) => x + 4000000000),
    BigInt64Array.from(given[6], (x) => x * 1000000007n),
    BigUint64Array.from(given[7], (x) => x * 3n),
    // 2 and 3.
    new Uint16Array(9).fill(0x4000), new Uint16Array(9).fill(0x4040),
    Float64Array.from(given[10], (x) => x / 3), Uint8Array.from(given[11], (x) => 1 - x),
  ];
  kernels.dtypes(...given);
  given.forEach((array, i) => assert.deepEqual(array, want[i], `parameter ${i}`));
}

// --- Wrong calls ---
const sums = new Float32Array(512);
assert.throws(() => kernels.row_sums(sums),
              /TypeError: row_sums has 2 parameters, not 1/);
assert.throws(() => kernels.row_sums(new Float32Array(5), sums),
              /row_sums: A must be a Float32Array of 262144 elements/);
assert.throws(() => kernels.row_sums(new Float64Array(512 * 512), sums),
              /row_sums: A must be a Float32Array of 262144 elements/);

// --- Ways to load ---
const bytes = await readFile(new URL('kernels_module.wasm', import.meta.url));
for (const source of [bytes, await WebAssembly.compile(bytes),
                      'kernels_module.wasm',
                      new URL('kernels_module.wasm', import.meta.url)]) {
  assert.deepEqual(Object.keys(await load(source)), Object.keys(kernels));
}
await assert.rejects(load('absent.wasm'), /ENOENT/);

// --- The module's allocator ---
{
  const imports = { env: new Proxy({}, { get: () => () => 0 }) };
  const { exports } = (await WebAssembly.instantiate(bytes, imports)).instance;
  const pages = () => exports.memory.buffer.byteLength / 65536;
  const blocks = [];
  const fill = (block) => new Uint8Array(
    exports.memory.buffer, block.at, block.size).fill(block.mark);
  const check = (block) => assert(new Uint8Array(
    exports.memory.buffer, block.at, block.size).every((b) => b === block.mark));
  const round = () => {
    for (let i = 0; i < 3000; ++i) {
      if (blocks.length < 40 && random() > -0.1) {
        const size = Math.floor(Math.abs(random()) ** 4 * 200000);
        const block = { at: exports.tilefarm_alloc(size) >>> 0, size,
                        mark: i % 251 };
        assert(block.at !== 0 && block.at % 64 === 0);
        fill(block);
        blocks.push(block);
      } else if (blocks.length > 0) {
        const at = Math.floor(Math.abs(random()) * blocks.length);
        const [block] = blocks.splice(at, 1);
        check(block);
        exports.tilefarm_free(block.at);
      }
    }
    for (const block of blocks.splice(0)) {
      check(block);
      exports.tilefarm_free(block.at);
    }
  };
  round();
  // What was given back is used again: one block takes all of it.
  const before = pages();
  for (let i = 0; i < 5; ++i) round();
  assert(pages() <= before + 32, `${before} pages become ${pages()}`);
  const all = pages() * 65536 - 2 * 1024 * 1024;
  assert.notEqual(exports.tilefarm_alloc(all), 0);
  assert(pages() <= before + 32);
  // No memory for that, which harms nothing.
  for (const size of [0xffffffff, 0xfffffff0, 0xffff0000]) {
    assert.equal(exports.tilefarm_alloc(size), 0);
  }
  round();
}
console.log('right');
