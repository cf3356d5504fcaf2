// ONNX models made to do harm: the importer answers with an error that names
// the cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/interpreter.h"
#include "compiler/onnx/importer.h"
#include "compiler/onnx/schema.h"
#include "google/protobuf/text_format.h"

namespace tilefarm::onnx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Some tenths of a second at most.
absl::Status RunBriefly(const ir::PrimFunc& function,
                        std::span<const std::span<std::byte>> buffers) {
  return ir::Interpret(function, buffers, {.max_steps = 200'000});
}

// Two inputs, x and y, of float32[2]; `graph` is the rest of the graph in
// protobuf's text format, `model` that of the model.
std::string Model(const std::string& graph, const std::string& model = "") {
  const std::string input = R"(
    type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } })";
  pb::ModelProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("ir_version: 8 ", model, " opset_import { version: 15 }",
                   " graph { name: 'g' input { name: 'x' ", input,
                   "} input { name: 'y' ", input, "} ", graph, "}"),
      &proto));
  return proto.SerializeAsString();
}

absl::Status Import(const std::string& bytes,
                    const std::string& directory = "") {
  return ImportBytes(bytes, directory, {}, RunBriefly).status();
}

#define EXPECT_ERROR(status, code_name, text)                        \
  do {                                                               \
    const absl::Status actual = (status);                            \
    EXPECT_EQ(actual.code(), absl::StatusCode::code_name) << actual; \
    EXPECT_THAT(std::string(actual.message()), text);                \
  } while (false)

constexpr char kOutput[] = " output { name: 'z' }";

TEST(HostileModelTest, AModelThatIsFineIsImported) {
  EXPECT_TRUE(
      Import(Model(absl::StrCat(
                 "node { op_type: 'Add' input: ['x', 'y'] output: 'z' }",
                 kOutput)))
          .ok());
}

TEST(HostileModelTest, ADamagedFileIsNoModel) {
  const std::string whole = Model(absl::StrCat(
      "node { op_type: 'Add' input: ['x', 'y'] output: 'z' }", kOutput));
  EXPECT_ERROR(Import(whole.substr(0, whole.size() - 3)), kInvalidArgument,
               HasSubstr("damaged or truncated"));
  EXPECT_ERROR(Import("not protobuf at all"), kInvalidArgument,
               HasSubstr("not an ONNX model"));
  EXPECT_ERROR(Import(""), kInvalidArgument, HasSubstr("it has no graph"));
}

TEST(HostileModelTest, ACycleIsAnInputThatNoNodeBeforeComputes) {
  EXPECT_ERROR(
      Import(Model(absl::StrCat(
          "node { op_type: 'Add' name: 'first' input: ['x', 'b'] output: 'a' }"
          "node { op_type: 'Add' input: ['a', 'y'] output: 'b' }",
          kOutput))),
      kInvalidArgument,
      AllOf(HasSubstr("Add (node first)"), HasSubstr("'b' is not computed")));
}

TEST(HostileModelTest, AnOutputMustBeComputedOnce) {
  EXPECT_ERROR(Import(Model(absl::StrCat(
                   "node { op_type: 'Add' input: ['x', 'y'] output: 'z' }"
                   "node { op_type: 'Mul' input: ['x', 'y'] output: 'z' }",
                   kOutput))),
               kInvalidArgument, HasSubstr("two nodes compute 'z'"));
  EXPECT_ERROR(Import(Model(kOutput)), kInvalidArgument,
               HasSubstr("output 'z' is not computed by any node"));
}

TEST(HostileModelTest, DimensionsMustBeSensible) {
  const auto with_input = [](const std::string& dims) {
    return Import(Model(absl::StrCat(
        "input { name: 'w' type { tensor_type { elem_type: 1 shape {", dims,
        "} } } }", kOutput)));
  };
  EXPECT_ERROR(with_input("dim { dim_value: -4 }"), kInvalidArgument,
               AllOf(HasSubstr("input 'w'"), HasSubstr("dimension 0 is -4")));
  EXPECT_ERROR(with_input("dim { dim_value: 4294967296 }"
                          "dim { dim_value: 4294967296 }"),
               kInvalidArgument,
               AllOf(HasSubstr("input 'w'"), HasSubstr("bytes")));
  EXPECT_ERROR(with_input("dim { dim_param: 'batch' }"), kInvalidArgument,
               AllOf(HasSubstr("input 'w'"), HasSubstr("--dim batch=1")));
  EXPECT_ERROR(with_input("dim { }"), kInvalidArgument,
               HasSubstr("--dim w[0]=1"));
}

TEST(HostileModelTest, AnUnknownDimensionIsAnErrorThatListsTheModels) {
  const auto with_dims = [](const std::string& graph,
                            std::map<std::string, int64_t> dims) {
    return ImportBytes(
               Model(absl::StrCat(graph,
                                  "node { op_type: 'Add' input: ['x', 'y']"
                                  " output: 'z' }",
                                  kOutput)),
               "", {.dims = std::move(dims)}, RunBriefly)
        .status();
  };
  const std::string type = " type { tensor_type { elem_type: 1 shape { ";
  const std::string open = absl::StrCat(
      "input { name: 'w'", type,
      "dim { dim_param: 'batch' } dim { } dim { dim_param: 'batch' } } } } }"
      "value_info { name: 'z'",
      type, "dim { dim_param: 'inner' } } } } } ");
  EXPECT_TRUE(with_dims(open, {{"batch", 1}, {"w[1]", 2}, {"inner", 2}}).ok());
  EXPECT_ERROR(with_dims(open, {{"batch", 1}, {"w[1]", 2}, {"Batch", 2}}),
               kInvalidArgument,
               HasSubstr("--dim Batch=2: the model has no symbolic dimension "
                         "'Batch'; it has batch, w[1], inner"));
  EXPECT_ERROR(with_dims(open, {{"w[0]", 1}}), kInvalidArgument,
               HasSubstr("no symbolic dimension 'w[0]'"));
  EXPECT_ERROR(with_dims("", {{"batch", 1}}), kInvalidArgument,
               HasSubstr("it has none"));
  // The input's default is compiled, so its dimensions are not open.
  EXPECT_ERROR(
      with_dims(absl::StrCat("input { name: 'w'", type,
                             "dim { dim_param: 'batch' } } } } }"
                             " initializer { name: 'w' data_type: 1 dims: 1"
                             " float_data: 1 }"),
                {{"batch", 1}}),
      kInvalidArgument, HasSubstr("it has none"));
  std::string many;
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&many, "dim { dim_param: 'n", i, "' } ");
  }
  EXPECT_ERROR(
      with_dims(absl::StrCat("value_info { name: 'v'", type, many, "} } } }"),
                {{"batch", 1}}),
      kInvalidArgument, HasSubstr("n18, n19 and 10 more"));
}

TEST(HostileModelTest, AnInitialiserMustFitItsShape) {
  const auto with_tensor = [](const std::string& tensor) {
    return Import(Model(
        absl::StrCat("initializer { name: 'w' data_type: 1 ", tensor, "}")));
  };
  EXPECT_ERROR(with_tensor("dims: 2 raw_data: 'abc'"), kInvalidArgument,
               HasSubstr("tensor 'w': 3 bytes of data; its shape needs 8"));
  EXPECT_ERROR(with_tensor("dims: 3 float_data: [1, 2]"), kInvalidArgument,
               HasSubstr("tensor 'w': 8 bytes of data; its shape needs 12"));
  EXPECT_ERROR(with_tensor("dims: -2"), kInvalidArgument,
               HasSubstr("tensor 'w': negative dimension -2"));
  EXPECT_ERROR(with_tensor("dims: [4294967296, 4294967296]"), kInvalidArgument,
               HasSubstr("bytes"));
}

TEST(HostileModelTest, AnAttributeOfTheWrongTypeIsNamed) {
  EXPECT_ERROR(
      Import(Model(absl::StrCat(
          "node { op_type: 'Concat' name: 'join' input: ['x', 'y'] output: 'z'"
          " attribute { name: 'axis' type: STRING s: 'one' } }",
          kOutput))),
      kInvalidArgument,
      AllOf(HasSubstr("Concat (node join)"), HasSubstr("attribute axis"),
            HasSubstr("STRING")));
}

TEST(HostileModelTest, AMissingInputIsNamed) {
  EXPECT_ERROR(Import(Model(absl::StrCat(
                   "node { op_type: 'Add' name: 'sum' input: 'x' output: 'z' }",
                   kOutput))),
               kInvalidArgument,
               AllOf(HasSubstr("Add (node sum)"), HasSubstr("input 1")));
}

TEST(HostileModelTest, AllUnknownOperatorsAreListedAtOnce) {
  EXPECT_ERROR(
      Import(Model(absl::StrCat(
          "node { op_type: 'Frob' name: 'one' input: 'x' output: 'a' }"
          "node { op_type: 'Relu' input: 'a' output: 'b' }"
          "node { op_type: 'Twist' name: 'two' domain: 'com.example'"
          " input: 'b' output: 'c' }"
          "node { op_type: 'Twist' name: 'three' domain: 'com.example'"
          " input: 'x' output: 'z' }",
          kOutput))),
      kUnimplemented,
      AllOf(HasSubstr("Frob (node one)"), HasSubstr("Twist (node three)"),
            // What depends on an unsupported node is not judged.
            ::testing::Not(HasSubstr("Relu"))));
}

TEST(HostileModelTest, AttributesThatNobodyKnowsAreNamed) {
  const auto model = [](const std::string& name) {
    return Model(absl::StrCat(
        "node { op_type: 'Relu' name: 'one' input: 'x' output: 'z' attribute {"
        " name: '",
        name, "' type: INT i: 0 } }", kOutput));
  };
  EXPECT_ERROR(Import(model("leak")), kUnimplemented,
               HasSubstr("Relu (node one): attribute leak"));
  const absl::Status remark = Import(model("__remark"));
  EXPECT_TRUE(remark.ok()) << remark;
}

TEST(HostileModelTest, FunctionsThatCallThemselvesEnd) {
  EXPECT_ERROR(
      Import(Model(
          absl::StrCat("node { op_type: 'F' domain: 'd' input: 'x'"
                       " output: 'z' }",
                       kOutput),
          "opset_import { domain: 'd' version: 1 }"
          "functions { name: 'F' domain: 'd' input: 'p' output: 'q'"
          "  opset_import { version: 15 }"
          "  node { op_type: 'F' domain: 'd' input: 'p' output: 'q' } }")),
      kInvalidArgument, HasSubstr("nested more than 64 deep"));
}

TEST(HostileModelTest, FunctionsThatDoubleTheirWorkEnd) {
  std::string functions = "opset_import { domain: 'd' version: 1 }";
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(&functions, "functions { name: 'F", i,
                    "' domain: 'd' input: 'p' output: 'q'"
                    " opset_import { version: 15 }");
    for (const auto& [in, out] : {std::pair("p", "r"), std::pair("r", "q")}) {
      absl::StrAppend(&functions, " node { op_type: '",
                      i == 0 ? "Identity" : absl::StrCat("F", i - 1),
                      "' domain: '", i == 0 ? "" : "d", "' input: '", in,
                      "' output: '", out, "' }");
    }
    functions += "}";
  }
  EXPECT_ERROR(Import(Model(absl::StrCat("node { op_type: 'F49' domain: 'd'"
                                         " input: 'x' output: 'z' }",
                                         kOutput),
                            functions)),
               kInvalidArgument, HasSubstr("nodes after its loops"));
}

// `depth` nested If nodes, each in the other's branches. The condition is an
// input, so that both branches are imported.
std::string NestedIf(int depth) {
  std::string graph =
      "node { op_type: 'Neg' input: 'x' output: 'r0' }"
      "output { name: 'r0' }";
  for (int i = 1; i <= depth; ++i) {
    graph = absl::StrCat(
        "node { op_type: 'If' input: 'c' output: 'r", i,
        "' attribute { name: 'then_branch' type: GRAPH g { name: 't' ", graph,
        "} } attribute { name: 'else_branch' type: GRAPH g { name: 'e'"
        " node { op_type: 'Identity' input: 'x' output: 'e",
        i, "' } output { name: 'e", i, "' } } } } output { name: 'r", i, "' }");
  }
  return Model(absl::StrCat(
      "input { name: 'c' type { tensor_type { elem_type: 9 shape { } } } }",
      graph));
}

TEST(HostileModelTest, SubgraphsMayNestOnlySoDeep) {
  EXPECT_TRUE(Import(NestedIf(8)).ok()) << Import(NestedIf(8));
  // Every level nests three messages; the parser takes 200.
  EXPECT_ERROR(Import(NestedIf(90)), kInvalidArgument,
               HasSubstr("not an ONNX model"));
}

TEST(HostileModelTest, ALoopThatNeverEndsIsRefused) {
  const std::string loop = absl::StrCat(
      "initializer { name: 'n' data_type: 7 int64_data: 9000000000000000 }"
      "initializer { name: 't' data_type: 9 int32_data: 1 }"
      "node { op_type: 'Loop' name: 'spin' input: ['n', 't', 'x'] output: 'z'"
      " attribute { name: 'body' type: GRAPH g { name: 'b'"
      "  input { name: 'i' } input { name: 'go' } input { name: 'v' }"
      "  node { op_type: 'Identity' input: 'go' output: 'go2' }"
      "  node { op_type: 'Neg' input: 'v' output: 'w' }"
      "  output { name: 'go2' } output { name: 'w' } } } }",
      kOutput);
  const absl::Status status = Import(Model(loop));
  EXPECT_FALSE(status.ok());
}

TEST(HostileModelTest, AConstantOfAbsurdSizeIsRefused) {
  const auto filled = [](const std::string& extents) {
    return Import(Model(absl::StrCat(
        "initializer { name: 's' data_type: 7 dims: 2 int64_data: [", extents,
        "] } node { op_type: 'ConstantOfShape' name: 'big' input: 's'"
        " output: 'a' } node { op_type: 'Shape' input: 'a' output: 'z' }",
        kOutput)));
  };
  EXPECT_FALSE(filled("4294967296, 4294967296").ok());
  EXPECT_FALSE(filled("-1, 5").ok());
}

// A directory with a model's external data, and what lies around it.
class ExternalDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) /
            absl::StrCat("hostile_model_", getpid());
    fs::remove_all(root_);
    fs::create_directories(root_ / "model" / "inner");
    Write(root_ / "secret", "0123456789abcdef");
    Write(root_ / "model" / "weights", "0123456789abcdef");
    fs::create_symlink(root_ / "secret", root_ / "model" / "link");
    fs::create_directory_symlink(root_, root_ / "model" / "up");
    fs::create_symlink(root_ / "model" / "weights",
                       root_ / "model" / "inner" / "back");
  }
  void TearDown() override { fs::remove_all(root_); }

  static void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path) << text;
  }

  // A model with one initialiser of float32[2] in the file.
  absl::Status ImportWith(const std::string& location,
                          const std::string& entries = "") {
    return Import(
        Model(absl::StrCat(
            "initializer { name: 'w' data_type: 1 dims: 2"
            " data_location: EXTERNAL external_data { key: 'location' value: '",
            location, "' } ", entries,
            "} node { op_type: 'Add' input: ['x', 'w'] output: 'z' }",
            kOutput)),
        (root_ / "model").string());
  }

  fs::path root_;
};

TEST_F(ExternalDataTest, AFileInTheModelsDirectoryIsRead) {
  EXPECT_TRUE(ImportWith("weights").ok()) << ImportWith("weights");
  // A symbolic link inside of the directory does not leave it.
  EXPECT_TRUE(ImportWith("inner/back").ok()) << ImportWith("inner/back");
}

TEST_F(ExternalDataTest, PathsThatLeaveTheDirectoryAreRefused) {
  EXPECT_ERROR(ImportWith((root_ / "secret").string()), kInvalidArgument,
               HasSubstr("must be a path relative to the model"));
  for (const std::string location :
       {"../secret", "inner/../../secret", "link", "up/secret"}) {
    EXPECT_ERROR(ImportWith(location), kInvalidArgument,
                 AllOf(HasSubstr("tensor 'w'"),
                       HasSubstr("leaves the model's directory")));
  }
  EXPECT_ERROR(ImportWith(""), kInvalidArgument,
               HasSubstr("must be a path relative to the model"));
  EXPECT_ERROR(ImportWith("inner"), kInvalidArgument,
               HasSubstr("not a readable file"));
}

TEST_F(ExternalDataTest, BytesOutsideOfTheFileAreRefused) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return absl::StrCat("external_data { key: '", key, "' value: '", value,
                        "' }");
  };
  EXPECT_TRUE(ImportWith("weights", entry("offset", "8")).ok());
  EXPECT_ERROR(ImportWith("weights", entry("offset", "9")), kInvalidArgument,
               AllOf(HasSubstr("tensor 'w'"), HasSubstr("the file has 16")));
  EXPECT_ERROR(ImportWith("weights", entry("offset", "9223372036854775807")),
               kInvalidArgument, HasSubstr("the file has 16"));
  EXPECT_ERROR(ImportWith("weights", entry("offset", "-8")), kInvalidArgument,
               HasSubstr("offset is '-8'"));
  EXPECT_ERROR(ImportWith("weights", entry("length", "4")), kInvalidArgument,
               HasSubstr("4 bytes for a tensor of 8"));
}

TEST_F(ExternalDataTest, AMissingFileIsNamed) {
  EXPECT_ERROR(ImportWith("gone"), kNotFound,
               AllOf(HasSubstr("tensor 'w'"), HasSubstr("gone")));
  EXPECT_ERROR(
      ImportFile((root_ / "none.onnx").string(), {}, RunBriefly).status(),
      kNotFound, HasSubstr("none.onnx"));
}

TEST_F(ExternalDataTest, AModelWithoutADirectoryHasNone) {
  EXPECT_ERROR(
      Import(Model("initializer { name: 'w' data_type: 1 dims: 2"
                   " data_location: EXTERNAL"
                   " external_data { key: 'location' value: 'weights' } }")),
      kInvalidArgument, HasSubstr("may not have any"));
}

}  // namespace
}  // namespace tilefarm::onnx
