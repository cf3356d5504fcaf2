#include "cost_model/xgboost_trainer.h"

#include <xgboost/c_api.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace tilefarm::cost_model {
namespace {

using Json = nlohmann::json;

// The only conversion of the library's errors. They are internal errors,
// because the input was checked before.
absl::Status Checked(int code, const char* doing) {
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("XGBoost cannot ", doing, ": ", XGBGetLastError()));
}

class Matrix {
 public:
  ~Matrix() {
    if (handle_ != nullptr) XGDMatrixFree(handle_);
  }
  absl::Status Create(const TrainingSet& set) {
    const size_t rows = set.values.size() / static_cast<size_t>(set.columns);
    // The library's "array interface": an address and a shape, as JSON.
    const Json array = {
        {"data", {reinterpret_cast<uintptr_t>(set.values.data()), true}},
        {"shape", {rows, set.columns}},
        {"typestr", "<f4"},
        {"version", 3}};
    return Checked(
        XGDMatrixCreateFromDense(array.dump().c_str(),
                                 R"({"missing": 0.0, "nthread": 1})", &handle_),
        "make a matrix");
  }
  DMatrixHandle handle() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

class Booster {
 public:
  ~Booster() {
    if (handle_ != nullptr) XGBoosterFree(handle_);
  }
  absl::Status Create(const Matrix& matrix, const TrainingOptions& options) {
    const DMatrixHandle matrices[] = {matrix.handle()};
    TF_RETURN_IF_ERROR(
        Checked(XGBoosterCreate(matrices, 1, &handle_), "make a booster"));
    const std::pair<const char*, std::string> parameters[] = {
        {"booster", "gbtree"},
        {"tree_method", "hist"},
        {"objective", "reg:squarederror"},
        {"base_score", "0"},
        {"nthread", "1"},
        {"verbosity", "0"},
        {"seed", absl::StrCat(options.seed & 0x7fffffff)},
        {"max_depth", absl::StrCat(options.max_depth)},
        {"max_bin", absl::StrCat(options.max_bins)},
        {"eta", absl::StrCat(options.learning_rate)},
        {"colsample_bynode", absl::StrCat(options.column_share)},
        {"lambda", absl::StrCat(options.l2_penalty)},
        {"min_child_weight", "1"},
    };
    for (const auto& [name, value] : parameters) {
      TF_RETURN_IF_ERROR(Checked(
          XGBoosterSetParam(handle_, name, value.c_str()), "set a parameter"));
    }
    return absl::OkStatus();
  }

  // The current sums of the training rows; valid until the next call.
  absl::StatusOr<std::span<const float>> Margins(const Matrix& matrix) {
    const bst_ulong* shape = nullptr;
    bst_ulong dims = 0;
    const float* values = nullptr;
    TF_RETURN_IF_ERROR(
        Checked(XGBoosterPredictFromDMatrix(
                    handle_, matrix.handle(),
                    R"({"type": 1, "training": true, "iteration_begin": 0,
                        "iteration_end": 0, "strict_shape": false})",
                    &shape, &dims, &values),
                "predict"));
    size_t size = 1;
    for (bst_ulong d = 0; d < dims; ++d) size *= shape[d];
    return std::span<const float>(values, size);
  }

  absl::Status Boost(const Matrix& matrix, std::vector<float>& gradients,
                     std::vector<float>& hessians) {
    return Checked(
        XGBoosterBoostOneIter(handle_, matrix.handle(), gradients.data(),
                              hessians.data(), gradients.size()),
        "train");
  }

  absl::StatusOr<std::string> ToJson() {
    bst_ulong size = 0;
    const char* bytes = nullptr;
    TF_RETURN_IF_ERROR(
        Checked(XGBoosterSaveModelToBuffer(handle_, R"({"format": "json"})",
                                           &size, &bytes),
                "save"));
    return std::string(bytes, size);
  }

 private:
  BoosterHandle handle_ = nullptr;
};

// Breadth-first, so that children come after their parent.
std::vector<TreeNode> TreeFromJson(const Json& tree) {
  const auto left = tree.at("left_children").get<std::vector<int>>();
  const auto right = tree.at("right_children").get<std::vector<int>>();
  const auto column = tree.at("split_indices").get<std::vector<int>>();
  const auto threshold = tree.at("split_conditions").get<std::vector<float>>();
  const auto missing_left = tree.at("default_left").get<std::vector<int>>();
  std::vector<TreeNode> nodes(1);
  std::vector<int> origin = {0};
  for (size_t i = 0; i < origin.size(); ++i) {
    const size_t at = static_cast<size_t>(origin[i]);
    nodes[i].threshold = threshold.at(at);
    if (left.at(at) < 0) continue;
    nodes[i].column = column.at(at);
    nodes[i].missing_goes_left = missing_left.at(at) != 0;
    nodes[i].left = static_cast<int32_t>(nodes.size());
    nodes[i].right = nodes[i].left + 1;
    origin.push_back(left.at(at));
    origin.push_back(right.at(at));
    nodes.resize(nodes.size() + 2);
  }
  return nodes;
}

absl::StatusOr<Forest> ForestFromJson(const std::string& text, int columns) {
  // The text is the library's own, but no exception may leave this function.
  try {
    const Json model = Json::parse(text);
    std::vector<std::vector<TreeNode>> trees;
    for (const Json& tree :
         model.at("learner").at("gradient_booster").at("model").at("trees")) {
      trees.push_back(TreeFromJson(tree));
    }
    return Forest::Create(trees, columns);
  } catch (const Json::exception& e) {
    return absl::InternalError(
        absl::StrCat("XGBoost wrote a model of another form: ", e.what()));
  } catch (const std::out_of_range& e) {
    return absl::InternalError(
        absl::StrCat("XGBoost wrote a model of another form: ", e.what()));
  }
}

std::vector<float> SumsOf(const TrainingSet& set,
                          std::span<const float> margins) {
  std::vector<float> sums;
  sums.reserve(set.rows.size());
  size_t row = 0;
  for (const int rows : set.rows) {
    float sum = 0;
    for (int r = 0; r < rows; ++r) sum += margins[row++];
    sums.push_back(sum);
  }
  return sums;
}

}  // namespace

absl::StatusOr<TrainingResult> Train(const TrainingSet& set,
                                     const TrainingOptions& options) {
  Matrix matrix;
  Booster booster;
  TF_RETURN_IF_ERROR(matrix.Create(set));
  TF_RETURN_IF_ERROR(booster.Create(matrix, options));
  std::vector<float> gradients, hessians;
  for (int round = 0; round < options.rounds; ++round) {
    TF_ASSIGN_OR_RETURN(const std::span<const float> margins,
                        booster.Margins(matrix));
    const std::vector<float> sums = SumsOf(set, margins);
    gradients.clear();
    hessians.clear();
    // Weighted squared error of the sums. All rows of a candidate change at
    // once, so each row gets the curvature of changing all of them: with less,
    // their steps would add up to too large a step.
    for (size_t c = 0; c < set.rows.size(); ++c) {
      const float gradient = set.weights[c] * (sums[c] - set.targets[c]);
      const float hessian = set.weights[c] * static_cast<float>(set.rows[c]);
      gradients.insert(gradients.end(), static_cast<size_t>(set.rows[c]),
                       gradient);
      hessians.insert(hessians.end(), static_cast<size_t>(set.rows[c]),
                      hessian);
    }
    TF_RETURN_IF_ERROR(booster.Boost(matrix, gradients, hessians));
  }
  TrainingResult result;
  TF_ASSIGN_OR_RETURN(const std::string json, booster.ToJson());
  TF_ASSIGN_OR_RETURN(result.forest, ForestFromJson(json, set.columns));
  TF_ASSIGN_OR_RETURN(const std::span<const float> margins,
                      booster.Margins(matrix));
  result.fitted = SumsOf(set, margins);
  return result;
}

}  // namespace tilefarm::cost_model
