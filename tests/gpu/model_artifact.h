// A small model on a device, in the test process:
//
//   h(a, w, to): to = a + 2 + w, by three kernels and a workspace
//   y = h(h(x, w), w), x2 = x; with open dimensions, of rows of 16 floats
#ifndef TILEFARM_TESTS_GPU_MODEL_ARTIFACT_H_
#define TILEFARM_TESTS_GPU_MODEL_ARTIFACT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "compiler/codegen/host_stub.h"
#include "compiler/codegen/link.h"
#include "compiler/codegen/model_object.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"
#include "tests/codegen/kernel.h"

namespace tilefarm::codegen {

inline constexpr int64_t kModelRow = 16;
inline constexpr int64_t kModelRows = 4;

// `launch(name, arguments, floats)` describes a launch of add_one(from, to) or
// add(from, to).
template <typename Launch>
DeviceFunction ModelFunction(const std::string& symbol, int64_t rows,
                             const Launch& launch) {
  const int64_t floats = rows * kModelRow;
  const int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
  DeviceFunction function;
  function.symbol = symbol;
  function.parameter_bytes = {bytes, bytes, bytes};
  function.parameter_access = {1, 1, 2};
  function.workspace_bytes = {bytes};
  function.kernels = {launch("add_one", std::vector<int>{0, 3}, floats),
                      launch("add_one", std::vector<int>{3, 2}, floats),
                      launch("add", std::vector<int>{1, 2}, floats)};
  return function;
}

inline ModelVariant VariantOfModel(const std::string& kernel, int64_t rows) {
  using Kind = ModelOperand::Kind;
  const int64_t bytes = rows * kModelRow * static_cast<int64_t>(sizeof(float));
  const std::vector<int64_t> shape = {rows, kModelRow};
  const ModelOperand weights{Kind::kWeights, 512, bytes};
  const ModelOperand between{Kind::kArena, 0, bytes};
  return {
      .input_shapes = {shape},
      .output_shapes = {shape, shape},
      .input_bytes = {bytes},
      .output_bytes = {bytes, bytes},
      .steps = {
          {kernel, {{Kind::kInput, 0, bytes}, weights, between}},
          {kernel, {between, weights, {Kind::kOutput, 0, bytes}}},
          {"", {{Kind::kOutput, 1, bytes}, {Kind::kInput, 0, bytes}}, bytes}}};
}

// Element i of the weights.
inline float ModelWeight(size_t i) { return 100.0f + static_cast<float>(i); }

// The library; with open dimensions for one row and for all.
template <typename Launch>
absl::StatusOr<std::string> BuildModel(const target::Target& target,
                                       const std::string& image, bool open,
                                       const Launch& launch) {
  constexpr int64_t kFloats = kModelRows * kModelRow;
  std::vector<float> weights;
  for (size_t i = 0; i < kFloats; ++i) weights.push_back(ModelWeight(i));
  const std::vector<float> unused(16, -1);
  const int64_t rows = open ? -1 : kModelRows;
  ModelDescription model;
  model.symbol = "model";
  model.inputs = {{"x", 1, {rows, kModelRow}}};
  model.outputs = {{"y", 1, {rows, kModelRow}}, {"x2", 1, {rows, kModelRow}}};
  model.variants = {VariantOfModel("h", kModelRows)};
  std::vector<DeviceFunction> functions = {
      ModelFunction("h", kModelRows, launch)};
  if (open) {
    model.sizes = "rows=4; rows=1";
    model.variants.push_back(VariantOfModel("h1", 1));
    functions.push_back(ModelFunction("h1", 1, launch));
  }
  model.arena_bytes = kFloats * static_cast<int64_t>(sizeof(float));
  model.weights = {{0, std::as_bytes(std::span(unused))},
                   {512, std::as_bytes(std::span(weights))}};
  const Options options{target, /*hidden=*/true};
  std::vector<std::string> objects;
  TF_ASSIGN_OR_RETURN(objects.emplace_back(),
                      EmitHostStub(functions, image, options));
  TF_ASSIGN_OR_RETURN(objects.emplace_back(), EmitModelObject(model, options));
  return LinkSharedObject(objects, target.HostPart());
}

// The library's functions (docs/formats.md, "Model artifacts").
class DeviceModel {
 public:
  explicit DeviceModel(const Kernel& library) : library_(library.handle()) {}
  ~DeviceModel() { Destroy(); }
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;

  int Create() {
    return Find<int(const void*, void**)>("model_create")(nullptr, &model_);
  }
  int CreateOn(void* stream) {
    return Find<int(const void*, void*, void**)>("model_create_on")(
        nullptr, stream, &model_);
  }
  void Destroy() {
    Find<void(void*)>("model_destroy")(model_);
    model_ = nullptr;
  }
  int Run(const void* x, void* y, void* x2) {
    const void* inputs[] = {x};
    void* outputs[] = {y, x2};
    return Find<int(void*, const void* const*, void* const*)>("model_run")(
        model_, inputs, outputs);
  }
  int RunOn(void* stream, const void* x, void* y, void* x2) {
    const void* inputs[] = {x};
    void* outputs[] = {y, x2};
    return Find<int(void*, void*, const void* const*, void* const*)>(
        "model_run_on")(model_, stream, inputs, outputs);
  }
  int RunRows(int64_t rows, const void* x, void* y, void* x2) {
    const void* inputs[] = {x};
    void* outputs[] = {y, x2};
    const int64_t shape[] = {rows, kModelRow};
    const int64_t* shapes[] = {shape};
    return Find<int(void*, const void* const*, const int64_t* const*,
                    void* const*, int64_t* const*)>("model_run_shaped")(
        model_, inputs, shapes, outputs, nullptr);
  }
  std::string Error() { return Find<const char*()>("model_error")(); }

 private:
  template <typename Signature>
  Signature* Find(const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library_, name));
  }

  void* library_;
  void* model_ = nullptr;
};

// What y must be.
inline std::vector<float> ModelResult(const std::vector<float>& x) {
  std::vector<float> y;
  for (size_t i = 0; i < x.size(); ++i) {
    y.push_back(x[i] + 4 + 2 * ModelWeight(i));
  }
  return y;
}

// What the tests of both drivers run.
class DeviceModelTest : public testing::Test {
 protected:
  DeviceModelTest() { std::iota(x_.begin(), x_.end(), 1.0f); }

  static Kernel LoadModel(const absl::StatusOr<std::string>& bytes) {
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    auto library = Kernel::Load(*bytes);
    EXPECT_TRUE(library.ok()) << library.status();
    return *std::move(library);
  }

  // Runs the model, whose outputs must be right.
  void RunRight(DeviceModel& model) {
    y_.assign(x_.size(), -1);
    x2_.assign(x_.size(), -1);
    ASSERT_EQ(model.Run(x_.data(), y_.data(), x2_.data()), 0) << model.Error();
    EXPECT_EQ(y_, ModelResult(x_));
    EXPECT_EQ(x2_, x_);
  }

  // The same for the first rows; the rest of the output must stay.
  void RunRowsRight(DeviceModel& model, int64_t rows) {
    y_.assign(x_.size(), -1);
    ASSERT_EQ(model.RunRows(rows, x_.data(), y_.data(), x2_.data()), 0)
        << model.Error();
    std::vector<float> expected = ModelResult(x_);
    std::fill(expected.begin() + rows * kModelRow, expected.end(), -1.0f);
    EXPECT_EQ(y_, expected);
  }

  // Instances of two threads, with the first runs of one during those of
  // another.
  void RunInTwoThreads(const Kernel& library) {
    const auto run = [&] {
      std::vector<float> y(x_.size()), x2(x_.size());
      for (int instance = 0; instance < 10; ++instance) {
        DeviceModel model(library);
        ASSERT_EQ(model.Create(), 0) << model.Error();
        for (int i = 0; i < 4; ++i) {
          ASSERT_EQ(model.Run(x_.data(), y.data(), x2.data()), 0)
              << model.Error();
          ASSERT_EQ(y, ModelResult(x_));
        }
      }
    };
    std::thread other(run);
    run();
    other.join();
  }

  std::vector<float> x_ = std::vector<float>(kModelRows * kModelRow);
  std::vector<float> y_ = std::vector<float>(x_.size(), -1);
  std::vector<float> x2_ = y_;
};

}  // namespace tilefarm::codegen

#endif  // TILEFARM_TESTS_GPU_MODEL_ARTIFACT_H_
