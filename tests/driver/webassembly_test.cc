// Modules for wasm32, run by Node.js.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/classifier_model.h"

namespace tilefarm {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

struct Result {
  int code;
  std::string out;  // and err
};

class WebAssembly : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/webassembly-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result Run(const std::string& command) {
    const int status = std::system(
        absl::StrCat("cd ", folder_.string(), " && ", command, " >out.txt 2>&1")
            .c_str());
    std::ifstream file(folder_ / "out.txt");
    std::ostringstream text;
    text << file.rdbuf();
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
  }
  Result Tunec(const std::string& arguments) {
    return Run(absl::StrCat("env -u TUNE_SERVER ", TILEFARM_BIN_DIR, "/tunec ",
                            arguments));
  }
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void Copy(const std::string& path) {
    fs::copy(fs::path(TILEFARM_SOURCE_DIR) / path, folder_);
  }

  fs::path folder_;
};

TEST_F(WebAssembly, KernelsComputeWhatJavaScriptDoes) {
  Copy("tests/driver/webassembly/kernels.py");
  Copy("tests/driver/webassembly/kernels.mjs");
  for (const char* flags : {"--target wasm32 --as-is", "--target wasm32"}) {
    const Result built =
        Tunec(absl::StrCat("kernels.py -o kernels_module.wasm ", flags));
    ASSERT_EQ(built.code, 0) << flags << ": " << built.out;
    const Result run = Run("node kernels.mjs");
    EXPECT_EQ(run.code, 0) << flags;
    EXPECT_EQ(run.out, "right\n") << flags;
  }
}

TEST_F(WebAssembly, AModelClassifies) {
  Copy("examples/model/classify.mjs");
  Write("model.onnx", onnx::ClassifierModel());
  const Result built =
      Tunec("model.onnx --target wasm32 --dim batch=1 -o model.wasm");
  ASSERT_EQ(built.code, 0) << built.out;
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
    const Result run =
        Run(absl::StrCat("node classify.mjs ./model.mjs ", arguments));
    EXPECT_EQ(run.code, code) << arguments;
    EXPECT_EQ(run.out, out) << arguments;
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
  const Result built = Tunec(
      "model.onnx --target wasm32 --dim batch=2 --symbol net -o net.wasm"
      " --header loader.mjs");
  ASSERT_EQ(built.code, 0) << built.out;
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
  const Result run = Run("node use.mjs");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "right\n");
}

TEST_F(WebAssembly, WhatItCannotDoIsRefused) {
  Copy("tests/driver/webassembly/kernels.py");
  Write("model.onnx", onnx::ClassifierModel());
  const auto expect = [&](const std::string& arguments,
                          const std::string& message) {
    const Result refused = Tunec(arguments);
    EXPECT_EQ(refused.code, 1) << arguments;
    EXPECT_THAT(refused.out, HasSubstr(message)) << arguments;
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
  EXPECT_FALSE(fs::exists(folder_ / "k.wasm"));
  EXPECT_FALSE(fs::exists(folder_ / "m.wasm"));
}

// The same input gives the same module, and the digest of records tells modules
// apart.
TEST_F(WebAssembly, ModulesAreReproducible) {
  Copy("tests/driver/webassembly/kernels.py");
  for (const char* name : {"a", "b"}) {
    const Result built =
        Tunec(absl::StrCat("kernels.py --target wasm32 -o ", name, ".wasm"));
    ASSERT_EQ(built.code, 0) << built.out;
  }
  EXPECT_EQ(Run("cmp a.wasm b.wasm && cmp a.mjs b.mjs").code, 0);
}

}  // namespace
}  // namespace tilefarm
