// tunec with a model, as a process: exit codes, output files, messages. The
// models are those of ONNX's own tests (package libonnx-testdata).
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "compiler/driver/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/graph/test_graphs.h"
#include "tests/onnx/classifier_model.h"

namespace tilefarm {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;

const fs::path kModels = "/usr/share/libonnx-testdata/data/node";

struct Result {
  int code;
  std::string out, err;
};

class TunecModel : public testing::Test {
 protected:
  TunecModel() {
    std::string pattern = testing::TempDir() + "/tunec-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~TunecModel() override { fs::remove_all(folder_); }

  // Copies the model of one of ONNX's tests to model.onnx.
  bool Fetch(const std::string& test) {
    std::error_code error;
    fs::copy_file(kModels / test / "model.onnx", folder_ / "model.onnx",
                  fs::copy_options::overwrite_existing, error);
    return !error;
  }
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void WriteFloats(const std::string& name, std::vector<int64_t> shape,
                   float value) {
    const graph::TensorType type = graph::F32(std::move(shape));
    const std::vector<float> values(static_cast<size_t>(type.num_elements()),
                                    value);
    Write(name, driver::PrintNpy(type, graph::DataOf(values)));
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  Result Run(const std::string& arguments) {
    const std::string command = absl::StrCat(
        "cd ", folder_.string(), " && env -u TUNE_SERVER ", TILEFARM_BIN_DIR,
        "/tunec model.onnx --target host,cores=1 ", arguments,
        " >out.txt 2>err.txt");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read("out.txt"),
            Read("err.txt")};
  }
  void ExpectError(const std::string& arguments, const std::string& message) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_FALSE(fs::exists(folder_ / "out.so"));
  }

  fs::path folder_;
};

// y = x + z, all float32 [3, 4, 5].
#define FETCH_ADD() \
  if (!Fetch("test_add")) GTEST_SKIP() << "no models in " << kModels

TEST_F(TunecModel, BuildsALibraryAndItsHeader) {
  FETCH_ADD();
  const Result result = Run("-o out.so --symbol add --json");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("default schedule"));
  EXPECT_TRUE(fs::exists(folder_ / "out.so"));
  EXPECT_THAT(Read("out.h"), HasSubstr("int add_create("));
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["output"], "out.so");
  ASSERT_EQ(json["functions"].size(), 1u);
  EXPECT_EQ(json["functions"][0]["uses"], 1);
  EXPECT_EQ(json["functions"][0]["schedule"], "default");
  EXPECT_EQ(json["weight_bytes"], 0);
}

TEST_F(TunecModel, RunsOnceAndSavesTheOutputs) {
  FETCH_ADD();
  WriteFloats("x.npy", {3, 4, 5}, 1.5f);
  WriteFloats("y.npy", {3, 4, 5}, 2);
  const Result result = Run("--run x=x.npy --run y=y.npy --save results");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto sum = driver::ParseNpy(Read("results/sum.npy"));
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->type, graph::F32({3, 4, 5}));
  EXPECT_THAT(graph::Elements<float>(sum->data), testing::Each(3.5f));
}

TEST_F(TunecModel, BuildsTheSameBytesByItsLockFile) {
  FETCH_ADD();
  const Result written = Run("-o out.so --write-lock add.lock");
  ASSERT_EQ(written.code, 0) << written.err;
  const std::string library = Read("out.so");
  fs::remove(folder_ / "out.so");
  const Result locked = Run("-o out.so --locked add.lock");
  ASSERT_EQ(locked.code, 0) << locked.err;
  EXPECT_EQ(Read("out.so"), library);
  if (!Fetch("test_sub")) GTEST_SKIP() << "no models in " << kModels;
  fs::remove(folder_ / "out.so");
  ExpectError("-o out.so --locked add.lock", "the lock file has no entry");
}

TEST_F(TunecModel, ChecksTheInputsOfARun) {
  FETCH_ADD();
  WriteFloats("x.npy", {3, 4, 5}, 1);
  WriteFloats("small.npy", {3, 4}, 1);
  Write("text.npy", "no numbers");
  ExpectError("--run x=x.npy", "no file for the input y, R.Tensor((3, 4, 5)");
  ExpectError("--run x=x.npy y=x.npy z=x.npy", "the model has no input 'z'");
  ExpectError("--run x=x.npy y=x.npy x=x.npy", "x is given twice");
  ExpectError("--run x=x.npy y=small.npy",
              "small.npy is R.Tensor((3, 4), dtype=\"float32\"); the input y");
  ExpectError("--run x=x.npy y=text.npy", "text.npy: not a usable .npy file");
  ExpectError("--run x=x.npy y=absent.npy", "absent.npy");
  ExpectError("--run x.npy y=x.npy", "NAME=... is expected");
}

TEST_F(TunecModel, ChecksDimensions) {
  FETCH_ADD();
  ExpectError("-o out.so --dim N", "NAME=... is expected");
  for (const char* sizes : {"0", "-2", "two", "1,", "1,x", ","}) {
    ExpectError(absl::StrCat("-o out.so --dim N=", sizes),
                "positive integers are expected, as in N=8 or N=1,8,32");
  }
  ExpectError("-o out.so --dim N=2,4,2", "N=2,4,2: 2 is given twice");
  ExpectError("-o out.so --dim N=1,2,3,4,5,6,7,8,9 --dim M=1,2,3,4,5,6,7,8",
              "72 combinations of sizes; at most 64");
  ExpectError("-o out.so --dim N=2 --dim N=3", "N is given twice");
  // All of this model's dimensions have sizes.
  ExpectError(
      "-o out.so --dim N=2",
      "--dim N=2: the model has no symbolic dimension 'N'; it has none");
}

TEST_F(TunecModel, ListsTheDimensionsOfTheModel) {
  Write("model.onnx", onnx::ClassifierModel());
  ExpectError("-o out.so", "--dim batch=1");
  ExpectError("-o out.so --dim batch=1 --dim seq=8",
              "--dim seq=8: the model has no symbolic dimension 'seq'; it has "
              "batch");
  EXPECT_EQ(Run("-o out.so --dim batch=2").code, 0);
}

TEST_F(TunecModel, OneLibraryTakesSeveralSizes) {
  Write("model.onnx", onnx::ClassifierModel());
  WriteFloats("one.npy", {1, 4}, 0.25f);
  WriteFloats("three.npy", {3, 4}, 0.5f);
  WriteFloats("two.npy", {2, 4}, 0.5f);
  ExpectError(
      "--dim batch=1,3 --run image=two.npy",
      "none of batch=1; batch=3 takes the inputs; for batch=1: two.npy");
  ExpectError("--dim batch=1,3 --dot graph.dot", "--dot draws one graph");
  const Result built = Run("-o out.so --dim batch=1,3");
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_THAT(Read("out.h"), HasSubstr("Compiled for batch=1; batch=3;"));
  EXPECT_THAT(Read("out.h"), HasSubstr("float [-1, 4]"));
  EXPECT_THAT(Read("out.h"), HasSubstr("int model_run_shaped("));
  for (const std::string name : {"one", "three"}) {
    const std::string run =
        absl::StrCat(" --run image=", name, ".npy --save ", name);
    const std::string size = name == "one" ? "1" : "3";
    const Result alone = Run("--dim batch=" + size + run + "_alone");
    ASSERT_EQ(alone.code, 0) << alone.err;
    const Result both = Run("--dim batch=1,3" + run + "_both --profile");
    ASSERT_EQ(both.code, 0) << both.err;
    EXPECT_EQ(Read(name + "_alone/scores.npy"), Read(name + "_both/scores.npy"))
        << name;
    EXPECT_NE(Read(name + "_both/scores.npy"), "");
  }
}

TEST_F(TunecModel, WritesTheWeightsIntoAFile) {
  Write("model.onnx", onnx::ClassifierModel());
  WriteFloats("image.npy", {1, 4}, 0.25f);
  const std::string run = "--dim batch=1 --run image=image.npy --json ";
  const Result inside = Run(run + "--save inside");
  ASSERT_EQ(inside.code, 0) << inside.err;
  EXPECT_EQ(nlohmann::json::parse(inside.out)["weights"], "");
  fs::create_directory(folder_ / "other");
  const Result outside =
      Run(run + "--save outside -o out.so --weights other/net.weights");
  ASSERT_EQ(outside.code, 0) << outside.err;
  const auto json = nlohmann::json::parse(outside.out);
  EXPECT_EQ(json["weights"], "other/net.weights");
  EXPECT_GT(Read("other/net.weights").size(), 64u);
  EXPECT_LE(Read("other/net.weights").size(),
            64 + json["weight_bytes"].get<size_t>());
  EXPECT_EQ(Read("other/net.weights").substr(0, 8), "TFWEIGHT");
  EXPECT_EQ(Read("inside/scores.npy"), Read("outside/scores.npy"));
  EXPECT_NE(Read("outside/scores.npy"), "");
  // The library knows the file's name, without its folder.
  EXPECT_THAT(Read("out.so"), HasSubstr("net.weights"));
  EXPECT_THAT(Read("out.so"), testing::Not(HasSubstr("other/net.weights")));
}

TEST_F(TunecModel, ChecksTheNameOfTheWeightsFile) {
  Write("model.onnx", onnx::ClassifierModel());
  ExpectError("-o out.so --dim batch=1 --weights folder/",
              "--weights folder/: the name of a file is expected");
  ExpectError("-o out.so --dim batch=1 --weights ./out.so",
              "--weights and --output name the same file");
  ExpectError("-o out.so --dim batch=1 --weights absent/net.weights",
              "cannot write absent/net.weights");
  EXPECT_EQ(Run("--dim batch=1 --weights net.weights").code, 2);
}

TEST_F(TunecModel, ProfilesARun) {
  Write("model.onnx", onnx::ClassifierModel());
  WriteFloats("image.npy", {1, 4}, 0.25f);
  const std::string run = "--dim batch=1 --run image=image.npy ";
  const Result plain = Run(run + "--save plain");
  ASSERT_EQ(plain.code, 0) << plain.err;
  const Result table = Run(run + "--profile --save profiled");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("10 runs of "));
  EXPECT_THAT(table.out, HasSubstr("GFLOPS"));
  EXPECT_EQ(Read("plain/scores.npy"), Read("profiled/scores.npy"));

  const Result json = Run(run +
                          "--profile --profile-runs 3 --profile-trace "
                          "trace.json --json -o out.so --weights w.weights");
  ASSERT_EQ(json.code, 0) << json.err;
  const auto result = nlohmann::json::parse(json.out);
  ASSERT_FALSE(result["profile"].empty());
  double share = 0;
  size_t calls = 0;
  for (const auto& kernel : result["profile"]) {
    share += kernel["share"].get<double>();
    calls += kernel["calls"].get<size_t>();
    EXPECT_EQ(kernel["calls"].get<int>() % 3, 0);
  }
  EXPECT_NEAR(share, 1, 1e-9);
  const auto trace = nlohmann::json::parse(Read("trace.json"));
  EXPECT_EQ(trace["traceEvents"].size(), calls);
  EXPECT_THAT(Read("out.so"), Not(HasSubstr("profile_hook")));
}

TEST_F(TunecModel, ChecksTheFlagsOfAProfile) {
  Write("model.onnx", onnx::ClassifierModel());
  WriteFloats("image.npy", {1, 4}, 0.25f);
  const std::string run = "--dim batch=1 --run image=image.npy ";
  EXPECT_EQ(Run("--dim batch=1 -o out.so --profile").code, 2);
  EXPECT_EQ(Run(run + "--profile-runs 5").code, 2);
  EXPECT_EQ(Run(run + "--profile-trace trace.json").code, 2);
  EXPECT_EQ(Run(run + "--profile --profile-runs 0").code, 2);
  ExpectError(run + "--profile --profile-trace absent/trace.json",
              "cannot write absent/trace.json");
}

TEST_F(TunecModel, RefusesFlagsThatAreForPrograms) {
  FETCH_ADD();
  ExpectError("-o out.so --as-is", "are for programs, not for models");
  Write("trace.txt", "");
  ExpectError("-o out.so --trace trace.txt", "not for models");
  ExpectError("-o out.so --symbol 'my net'", "is no C identifier");
}

TEST_F(TunecModel, RefusesFlagsThatAreForModels) {
  Write("program.py", "");
  const std::string command =
      absl::StrCat("cd ", folder_.string(), " && ", TILEFARM_BIN_DIR,
                   "/tunec program.py --target host -o out.so --dim N=1 "
                   "2>err.txt");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
  EXPECT_THAT(Read("err.txt"), HasSubstr("are for models"));
}

TEST_F(TunecModel, RequireTunedBuildsNothingWithoutRecords) {
  FETCH_ADD();
  EXPECT_EQ(Run("-o out.so --require-tuned").code, 3);
  EXPECT_FALSE(fs::exists(folder_ / "out.so"));
}

TEST_F(TunecModel, TimesTheModelInThreeWays) {
  FETCH_ADD();
  const Result result = Run("--time --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  for (const char* key :
       {"latency_seconds", "untuned_seconds", "unfused_seconds"}) {
    EXPECT_GT(json[key].get<double>(), 0) << key;
  }
  EXPECT_THAT(result.err, HasSubstr("default schedule"));
  EXPECT_FALSE(fs::exists(folder_ / "out.so"));
  const Result text = Run("--time");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("without fusion"));
}

TEST_F(TunecModel, TimesOnlyOnThisMachineAndNothingElse) {
  FETCH_ADD();
  ExpectError("--time -o out.so", "leave out --output");
  ExpectError("--time --run x=x.npy", "leave out --output, --run and --save");
  ExpectError("--time --save results", "leave out --output");
  ExpectError("--time --db absent.db", "absent.db");
  EXPECT_EQ(Run("--time --require-tuned").code, 3);
  const std::string command = absl::StrCat(
      "cd ", folder_.string(), " && ", TILEFARM_BIN_DIR,
      "/tunec model.onnx --target aarch64:cortex-a72 --time 2>err.txt");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
  EXPECT_THAT(Read("err.txt"), HasSubstr("give --target host"));
}

TEST_F(TunecModel, PrintsTheGraph) {
  FETCH_ADD();
  const Result result = Run("--print-after import --dot graph.dot");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("R.call_tir("));
  EXPECT_THAT(Read("graph.dot"), HasSubstr("digraph"));
  ExpectError("--print-after nothing", "the passes are import,");
}

TEST_F(TunecModel, NeedsSomethingToDo) { EXPECT_EQ(Run("").code, 2); }

TEST_F(TunecModel, RejectsFilesThatAreNoModels) {
  ExpectError("-o out.so", "cannot read model.onnx");
  Write("model.onnx", "this is text");
  ExpectError("-o out.so", "not an ONNX model");
  Write("model.onnx", "");
  ExpectError("-o out.so", "not an ONNX model");
}

TEST_F(TunecModel, RejectsATruncatedModel) {
  FETCH_ADD();
  const std::string whole = Read("model.onnx");
  Write("model.onnx", whole.substr(0, whole.size() / 2));
  ExpectError("-o out.so", "not an ONNX model");
}

// One field of a protobuf message: a message or a string.
std::string Field(int number, const std::string& bytes) {
  std::string text;
  text += static_cast<char>(number << 3 | 2);
  text += static_cast<char>(bytes.size());  // below 128
  return text + bytes;
}

TEST_F(TunecModel, ListsEveryOperatorThatItDoesNotKnow) {
  // GraphProto: node = 1, output = 12; NodeProto: input, output, name, op_type.
  const auto node = [](const char* op) {
    return Field(1, Field(2, op) + Field(3, "first") + Field(4, op));
  };
  const std::string graph =
      node("NoSuchOperator") + node("NeitherThis") + Field(12, Field(1, "o"));
  // ModelProto: graph = 7, opset_import = 8 (version 13).
  Write("model.onnx", Field(7, graph) + Field(8, "\x10\x0d"));
  const Result result = Run("-o out.so");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("NoSuchOperator"));
  EXPECT_THAT(result.err, HasSubstr("NeitherThis"));
}

}  // namespace
}  // namespace tilefarm
