// ONNX models with random damage: the importer answers with an error or a
// graph; it never crashes, hangs or takes all memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "compiler/graph/run_graph.h"
#include "compiler/ir/interpreter.h"
#include "compiler/onnx/importer.h"
#include "compiler/onnx/schema.h"

namespace tilefarm::onnx {
namespace {

namespace fs = std::filesystem;

// Some tenths of a second at most.
absl::Status RunBriefly(const ir::PrimFunc& function,
                        std::span<const std::span<std::byte>> buffers) {
  return ir::Interpret(function, buffers, {.max_steps = 200'000});
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

struct Seed {
  std::string name;
  std::string model;
};

// Models to damage: small ones with many attributes, functions, subgraphs and
// quantised types.
std::vector<Seed> Seeds() {
  std::vector<Seed> seeds;
  for (const char* name : {"test_argmax_default_axis_example",
                           "test_averagepool_2d_pads",
                           "test_cast_FLOAT_to_DOUBLE",
                           "test_celu_expanded",
                           "test_concat_2d_axis_0",
                           "test_constant_pad",
                           "test_conv_with_strides_padding",
                           "test_einsum_transpose",
                           "test_gather_elements_0",
                           "test_gemm_all_attributes",
                           "test_if",
                           "test_layer_normalization_2d_axis0_expanded",
                           "test_lstm_with_peepholes",
                           "test_maxpool_2d_ceil",
                           "test_qlinearconv",
                           "test_resize_upsample_scales_cubic",
                           "test_roialign_aligned_false",
                           "test_scan9_sum",
                           "test_scatternd_add",
                           "test_split_equal_parts_2d",
                           "test_transpose_all_permutations_3"}) {
    const fs::path path =
        fs::path("/usr/share/libonnx-testdata/data/node") / name / "model.onnx";
    if (fs::exists(path)) seeds.push_back({name, ReadAll(path)});
  }
  EXPECT_GE(seeds.size(), 12u) << "libonnx-testdata is not installed";
  // Exported models, where this checkout has them.
  const fs::path shared = fs::path(TILEFARM_SOURCE_DIR) / "../shared/models";
  std::error_code error;
  std::vector<fs::path> exported;
  for (const auto& entry : fs::directory_iterator(shared, error)) {
    if (entry.path().extension() == ".onnx") exported.push_back(entry.path());
  }
  std::sort(exported.begin(), exported.end());
  for (const fs::path& path : exported) {
    seeds.push_back({path.stem().string(), ReadAll(path)});
  }
  return seeds;
}

// One or two damages of the bytes.
std::string DamagedBytes(std::string bytes, Rng& rng) {
  for (uint64_t i = rng.Below(2) + 1; i > 0 && bytes.size() > 16; --i) {
    const size_t at = rng.Below(bytes.size());
    const size_t length = std::min(rng.Below(16) + 1, bytes.size() - at);
    switch (rng.Below(7)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        std::swap(bytes[at], bytes[rng.Below(bytes.size())]);
        break;
      case 4:
        // A byte of a small integer, such as an extent or an axis.
        bytes[at] = static_cast<char>(rng.Below(128));
        break;
      default:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.Below(8)));
        break;
    }
  }
  return bytes;
}

int64_t HostileInt(int64_t value, Rng& rng) {
  switch (rng.Below(8)) {
    case 0:
      return 0;
    case 1:
      return -value;
    case 2:
      return value + 1;
    case 3:
      return value - 1;
    case 4:
      return INT64_MAX - static_cast<int64_t>(rng.Below(2));
    case 5:
      return INT64_MIN + static_cast<int64_t>(rng.Below(2));
    case 6:
      return int64_t{1} << rng.Below(63);
    default:
      return rng.Between(-20, 20);
  }
}

// Changes one field somewhere in the message, so that the file stays a model
// but its numbers, types and names do not fit each other.
void DamageField(google::protobuf::Message& message, Rng& rng) {
  using google::protobuf::FieldDescriptor;
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  if (fields.empty()) return;
  const FieldDescriptor* field = fields[rng.Below(fields.size())];
  if (field->is_repeated()) {
    const int size = reflection.FieldSize(message, field);
    const int at = static_cast<int>(rng.Below(static_cast<uint64_t>(size)));
    const int other = static_cast<int>(rng.Below(static_cast<uint64_t>(size)));
    if (rng.Chance(0.1)) {
      reflection.RemoveLast(&message, field);
    } else if (rng.Chance(0.1)) {
      reflection.SwapElements(&message, field, at, other);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      DamageField(*reflection.MutableRepeatedMessage(&message, field, at), rng);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      reflection.SetRepeatedInt64(
          &message, field, at,
          HostileInt(reflection.GetRepeatedInt64(message, field, at), rng));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
      reflection.SetRepeatedFloat(&message, field, at,
                                  rng.Chance(0.5) ? -1e30f : 0.0f);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection.SetRepeatedString(
          &message, field, at,
          reflection.GetRepeatedString(message, field, other));
    }
    return;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      DamageField(*reflection.MutableMessage(&message, field), rng);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection.SetInt64(&message, field,
                          HostileInt(reflection.GetInt64(message, field), rng));
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      // Element types, mostly.
      reflection.SetInt32(&message, field,
                          static_cast<int32_t>(rng.Between(-1, 27)));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      reflection.SetFloat(&message, field, rng.Chance(0.5) ? -1e30f : 0.0f);
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      if (std::string text = reflection.GetString(message, field);
          field->name() == "raw_data") {
        reflection.SetString(&message, field, DamagedBytes(text, rng));
      } else {
        reflection.ClearField(&message, field);
      }
      break;
    default:
      reflection.ClearField(&message, field);
  }
}

std::string DamagedFields(const std::string& bytes, Rng& rng) {
  pb::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  for (uint64_t i = rng.Below(3) + 1; i > 0; --i) {
    // Mostly the graph: the model's own fields are few.
    if (rng.Chance(0.95)) {
      DamageField(*model.mutable_graph(), rng);
    } else {
      DamageField(model, rng);
    }
  }
  return model.SerializeAsString();
}

// Runs the model on zeros, if that takes neither long nor much memory.
void RunIfSmall(const graph::Graph& graph) {
  int64_t bytes = 0;
  for (const graph::Value& value : graph.values) {
    bytes += value.type.num_bytes();
    if (bytes > (8 << 20)) return;
  }
  std::vector<graph::TensorData> inputs;
  for (graph::ValueId id : graph.inputs) {
    inputs.emplace_back(std::vector<std::byte>(
        static_cast<size_t>(graph.values[id].type.num_bytes())));
  }
  // Steps may run out.
  graph::RunGraph(graph, inputs, RunBriefly).status().IgnoreError();
}

class DamagedModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) /
                 absl::StrCat("damaged_model_", getpid());
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Imports `count` models, each with the damage that `damage` does, and runs
  // those that are imported. The share of these is in [lowest, highest].
  // TILEFARM_FUZZ_RUNS overrides the count; with TILEFARM_FUZZ_TRACE set, each
  // is named before it is tried.
  void Check(
      int count, double lowest, double highest,
      const std::function<std::string(const std::string&, Rng&)>& damage) {
    const std::vector<Seed> seeds = Seeds();
    ASSERT_FALSE(seeds.empty());
    if (const char* runs = std::getenv("TILEFARM_FUZZ_RUNS")) {
      count = std::atoi(runs);
    }
    for (const Seed& seed : seeds) {
      // Zeros for the weights of exported models, a file without blocks.
      const fs::path weights = directory_ / (seed.name + ".weights");
      std::ofstream(weights).put('\0');
      fs::resize_file(weights, int64_t{1} << 30);
    }
    int imported = 0;
    for (int i = 0; i < count; ++i) {
      // Each has a seed of its own, so that one can be repeated by itself.
      Rng rng(20240229 + static_cast<uint64_t>(i));
      const Seed& seed = seeds[static_cast<size_t>(i) % seeds.size()];
      SCOPED_TRACE(absl::StrCat("damage ", i, " of ", seed.name));
      const std::string bytes = damage(seed.model, rng);
      if (std::getenv("TILEFARM_FUZZ_TRACE") != nullptr) {
        std::fprintf(stderr, "damage %d of %s\n", i, seed.name.c_str());
      }
      const absl::StatusOr<graph::Graph> graph =
          ImportBytes(bytes, directory_.string(), {}, RunBriefly);
      if (!graph.ok()) {
        EXPECT_NE(graph.status().message(), "");
        EXPECT_NE(graph.status().code(), absl::StatusCode::kInternal)
            << graph.status();
        continue;
      }
      ++imported;
      EXPECT_TRUE(graph::Verify(*graph).ok()) << graph::Verify(*graph);
      RunIfSmall(*graph);
    }
    std::cout << imported << " of " << count << " imported\n";
    // Both outcomes occur: the damages are neither harmless nor too large.
    EXPECT_GE(imported, count * lowest);
    EXPECT_LE(imported, count * highest);
  }

  fs::path directory_;
};

TEST_F(DamagedModelTest, DamagedBytesAreAnErrorOrAModel) {
  Check(600, 0.02, 0.6, DamagedBytes);
}

TEST_F(DamagedModelTest, DamagedFieldsAreAnErrorOrAModel) {
  Check(1200, 0.1, 0.9, DamagedFields);
}

}  // namespace
}  // namespace tilefarm::onnx
