// Prints the label with the highest score: node classify.mjs MODEL INPUT LABELS
//
// MODEL is the .mjs file that tunec writes beside a .wasm file.
import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';

async function main(path, inputPath, labelsPath) {
  const { load } = await import(pathToFileURL(path));
  const model = await load();
  if (model.inputs.length !== 1 || model.inputs[0].dtype !== 'float32' ||
      model.outputs.length !== 1 || model.outputs[0].dtype !== 'float32') {
    throw new Error('the model does not have one input and one output of float32');
  }
  const bytes = await readFile(inputPath);
  const input = new Float32Array(bytes.length / 4 | 0);
  new Uint8Array(input.buffer).set(bytes.subarray(0, input.byteLength));
  const given = { [model.inputs[0].name]: input };
  const scores = model.run(given)[model.outputs[0].name];
  model.destroy();


  const labels = (await readFile(labelsPath, 'utf8')).trimEnd().split('\n');
  const best = scores.indexOf(Math.max(...scores));
  if (best >= labels.length) {
    throw new Error(`${labelsPath}: has fewer labels than the model`);
  }
  console.log(`${labels[best]} ${scores[best].toFixed(3)}`);
}

if (process.argv.length !== 5) {
  console.error('usage: classify.mjs MODEL.mjs INPUT LABELS');
  process.exitCode = 2;
} else {
  try {
    await main(...process.argv.slice(2));
  } catch (error) {
    console.error(`classify: ${error.message}`);
    process.exitCode = 1;
  }
}
