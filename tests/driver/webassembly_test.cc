// Modules for wasm32, run by Node.js.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/classifier_model.h"
#include "tests/support/process.h"

namespace tilefarm::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

class WebAssembly : public ::testing::Test {
 protected:
  // In the folder; the output has both streams.
  CommandResult Run(const std::string& command) {
    return RunCommand(
        {"/bin/sh", "-c",
         absl::StrCat("cd ", folder_.path(), " && ", command, " 2>&1")});
  }
  CommandResult Tunec(const std::string& arguments) {
    return Run(absl::StrCat("env -u TUNE_SERVER ", TILEFARM_BIN_DIR, "/tunec ",
                            arguments));
  }
  void Write(const std::string& name, const std::string& bytes) {
    folder_.Write(name, bytes);
  }
  void Copy(const std::string& path) {
    fs::copy(fs::path(TILEFARM_SOURCE_DIR) / path, folder_.path());
  }

  TempDir folder_;
};

TEST_F(WebAssembly, KernelsComputeWhatJavaScriptDoes) {
  Copy("tests/driver/webassembly/kernels.py");
  Copy("tests/driver/webassembly/kernels.mjs");
  for (const char* flags : {"--target wasm32 --as-is", "--target wasm32"}) {
    const CommandResult built =
        Tunec(absl::StrCat("kernels.py -o kernels_module.wasm ", flags));
    ASSERT_EQ(built.exit_code, 0) << flags << ": " << built.output;
    const CommandResult run = Run("node kernels.mjs");
    EXPECT_EQ(run.exit_code, 0) << flags;
    EXPECT_EQ(run.output, "right\n") << flags;
  }
}

TEST_F(WebAssembly, AModelClassifies) {
  Copy("examples/model/classify.mjs");
  Write("model.onnx", onnx::ClassifierModel());
  const CommandResult built =
      Tunec("model.onnx --target wasm32 --dim batch=1 -o model.wasm");
  ASSERT_EQ(built.exit_code, 0) << built.output;
  const auto floats = [](const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(float));
  };
  Write("input", floats({0, 3, 1, 0}));
  Write("short", floats({0, 3, 1}));
  Write("labels", "cat\ndog\nbird\n");
  Write("few", "cat\n");
  const auto expect = [&](const std::string& arguments, int code,
                          const std::string& out) {
    const CommandResult run =
        Run(absl::StrCat("node classify.mjs ./model.mjs ", arguments));
    EXPECT_EQ(run.exit_code, code) << arguments;
    EXPECT_EQ(run.output, out) << arguments;
  };
  // exp(3) / (exp(0) + exp(3) + exp(1))
  expect("input labels", 0, "dog 0.844\n");
  expect("short labels", 1,
         "classify: input image must be a Float32Array of 4 elements\n");
  expect("input few", 1, "classify: few: has fewer labels than the model\n");
  expect("input", 2, "usage: classify.mjs MODEL.mjs INPUT LABELS\n");
}

TEST_F(WebAssembly, ModelsDescribeThemselves) {
  Write("model.onnx", onnx::ClassifierModel());
  const CommandResult built = Tunec(
      "model.onnx --target wasm32 --dim batch=2 --symbol net -o net.wasm"
      " --header loader.mjs");
  ASSERT_EQ(built.exit_code, 0) << built.output;
  Write("use.mjs", R"(import assert from 'node:assert/strict';
import { load } from './loader.mjs';
const source = new URL('net.wasm', import.meta.url);
const model = await load(source);
assert.deepEqual(model.inputs,
                 [{ name: 'image', dtype: 'float32', shape: [2, 4] }]);
assert.deepEqual(model.outputs,
                 [{ name: 'scores', dtype: 'float32', shape: [2, 3] }]);
// Instances do not share memory, and each run gives new arrays.
const other = await load(source);
const first = model.run({ image: Float32Array.of(9, 0, 0, 0, 0, 9, 0, 0) });
const second = other.run({ image: new Float32Array(8) });
const third = model.run({ image: Float32Array.of(0, 0, 9, 0, 0, 9, 0, 0) });
assert(first.scores[0] > 0.99 && first.scores[4] > 0.99);
assert(third.scores[2] > 0.99 && third.scores[0] < 0.01);
for (const score of second.scores) assert(Math.abs(score - 1 / 3) < 1e-6);
assert.throws(() => model.run({}), /input image must be a Float32Array of 8/);
model.destroy();
other.run({ image: new Float32Array(8) });
console.log('right');
)");
  const CommandResult run = Run("node use.mjs");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.output, "right\n");
}

TEST_F(WebAssembly, WhatItCannotDoIsRefused) {
  Copy("tests/driver/webassembly/kernels.py");
  Write("model.onnx", onnx::ClassifierModel());
  const auto expect = [&](const std::string& arguments,
                          const std::string& message) {
    const CommandResult refused = Tunec(arguments);
    EXPECT_EQ(refused.exit_code, 1) << arguments;
    EXPECT_THAT(refused.output, HasSubstr(message)) << arguments;
  };
  expect("kernels.py --target wasm32,cores=2 -o k.wasm",
         "wasm32 has one core, not 2");
  expect("model.onnx --target wasm32 --dim batch=1 -o m.wasm --weights w",
         "--weights: a wasm32 module has its weights inside");
  Write("image.npy", "");
  expect("model.onnx --target wasm32 --dim batch=1 --run image=image.npy",
         "--run runs the model on this machine: give --target host, not "
         "wasm32");
  expect("kernels.py --target wasm32,-simd128 -o k.wasm",
         "target wasm32 needs +simd128");
  EXPECT_FALSE(fs::exists(folder_.File("k.wasm")));
  EXPECT_FALSE(fs::exists(folder_.File("m.wasm")));
}

// The same input gives the same module, and the digest of records tells modules
// apart.
TEST_F(WebAssembly, ModulesAreReproducible) {
  Copy("tests/driver/webassembly/kernels.py");
  for (const char* name : {"a", "b"}) {
    const CommandResult built =
        Tunec(absl::StrCat("kernels.py --target wasm32 -o ", name, ".wasm"));
    ASSERT_EQ(built.exit_code, 0) << built.output;
  }
  EXPECT_EQ(Run("cmp a.wasm b.wasm && cmp a.mjs b.mjs").exit_code, 0);
}

}  // namespace
}  // namespace tilefarm::testing
