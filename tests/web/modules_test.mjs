// Modules of the dashboard that need no browser, in Node.
//
//   node modules_test.mjs SOURCE_DIR
import assert from "node:assert/strict";
import {cpSync, mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

// Node takes .js files for modules where a package file says so.
const folder = mkdtempSync(join(tmpdir(), "tilefarm-web-"));
process.on("exit", () => rmSync(folder, {recursive: true}));
cpSync(join(process.argv[2], "server", "web"), folder, {recursive: true});
writeFileSync(join(folder, "package.json"), '{"type": "module"}');
const load = (name) => import(pathToFileURL(join(folder, name)));

const {pairLines} = await load("diff.js");
const {Candidates, bestOf, improvements, lookOf, rankCorrelation, timeOf} = await load("candidates.js");
const format = await load("format.js");

let failed = 0;
function test(name, body) {
  try {
    body();
    console.log(`ok ${name}`);
  } catch (error) {
    ++failed;
    console.error(`FAILED ${name}\n${error.stack}`);
  }
}

test("a diff pairs equal lines", () => {
  assert.deepEqual(pairLines("a\nb\nc", "a\nx\nc\nd"), [
    {left: "a", right: "a"}, {left: "b", right: "x"}, {left: "c", right: "c"}, {left: null, right: "d"}]);
  assert.deepEqual(pairLines("", ""), [{left: "", right: ""}]);
});

test("a diff has every line of both texts, in order", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const text = () => Array.from({length: random(14)}, () => "abc"[random(3)]).join("\n");
  for (let round = 0; round < 2000; ++round) {
    const a = text(), b = text();
    const rows = pairLines(a, b);
    const side = (name) => rows.map((row) => row[name]).filter((line) => line !== null).join("\n");
    assert.equal(side("left"), a, `round ${round}`);
    assert.equal(side("right"), b, `round ${round}`);
  }
});

test("a diff of texts without anything in common ends", () => {
  const lines = (letter) => Array.from({length: 3000}, (unused, index) => `${letter}${index}`).join("\n");
  assert.equal(pairLines(lines("a"), lines("b")).length, 3000);
});

const columns = {
  count: 4, last: 14, tasks: [{workload: "w", target: "t"}], jobs: ["j"], devices: ["box@1"], statuses: ["ok", "run_error"],
  fingerprints: ["f"], record: [11, 12, 13, 14], task: [0, 0, 0, 0], job: [0, 0, 0, 0], device: [0, 0, 0, 0], status: [0, 1, 0, 0],
  fingerprint: [0, 0, 0, 0], seconds: [3, null, 2, 1], low: [1, null, 1, 1], high: [4, null, 4, 4], rank: [3, null, 2.5, null],
  confirmed: [0, 0, 1, 0], verified: [1, 0, 1, 1], stopped_early: [0, 0, 0, 1], unsteady: [0, 0, 0, 0], library: [0, 0, 0, 0],
  sketch: [1, 1, 1, 1], sequence: [1, 2, 3, 4], score: [0, 0, 0.5, 0.2], compile_seconds: [1, 1, 1, 1], at: [1, 2, 3, 4]};

test("candidates are taken once and in order", () => {
  const candidates = new Candidates().add(columns).add(columns);
  assert.deepEqual(candidates.all.map((one) => one.record), [11, 12, 13, 14]);
  assert.equal(candidates.of({workload: "w", target: "other"}).length, 0);
  assert.equal(candidates.of(null).length, 4);
  assert.equal(lookOf(candidates.all[3]).name, "ok, stopped early");
  assert.equal(lookOf(candidates.all[1]).name, "run error");
});

test("the best is confirmed, and was measured in full", () => {
  const {all} = new Candidates().add(columns);
  assert.equal(bestOf(all).record, 13);
  assert.equal(timeOf(all[2]), 2.5);
  assert.deepEqual(improvements(all).map(({candidate, index}) => [candidate.record, index]), [[11, 0], [13, 2]]);
  assert.equal(bestOf([]), null);
});

test("rank correlation is Spearman's", () => {
  assert.equal(rankCorrelation([1, 2, 3, 4], [10, 20, 25, 100]), 1);
  assert.equal(rankCorrelation([1, 2, 3, 4], [4, 3, 2, 1]), -1);
  assert.ok(Math.abs(rankCorrelation([1, 2, 2, 3], [1, 3, 2, 4]) - 0.948683) < 1e-6);
  assert.equal(rankCorrelation([1, 1, 1], [1, 2, 3]), null);
  assert.equal(rankCorrelation([1, 2], [1, 2]), null);
});

test("numbers are for people", () => {
  assert.equal(format.seconds(1.5e-5), "15.00 µs");
  assert.equal(format.seconds(0.0012345), "1.234 ms");
  assert.equal(format.seconds(2), "2.000 s");
  assert.equal(format.seconds(null), "–");
  assert.equal(format.times(10, 4), "2.50×");
  assert.equal(format.times(null, 4), "–");
  assert.equal(format.gflops(2500), "2.50 TFLOPS");
  assert.equal(format.clock(3725), "1:02:05");
  assert.equal(format.percent(0.031), "3.1 %");
  assert.equal(format.shortTarget("x86-64:znver4,cores=1,-pku,+avx"), "x86-64:znver4,cores=1");
  assert.equal(format.deviceName("lab.1@0123456789ab"), "lab.1");
  assert.equal(format.deviceModel("brand=AMD EPYC;cpu=znver5;features=-pku;l1=49152;l2=1048576"), "AMD EPYC, znver5, L1 48 KiB, L2 1024 KiB");
  assert.equal(format.deviceModel("plain"), "plain");
  assert.equal(format.pairs('{"clock_mhz":3700}'), "clock mhz 3700");
});

process.exitCode = failed > 0 ? 1 : 0;
