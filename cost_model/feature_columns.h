// The columns of a feature row: names and meanings. The table in
// feature_columns.cc documents every column.
//
// "log" in a meaning stands for log2(1 + x). A column is 0 where its subject
// does not exist.
#ifndef TILEFARM_COST_MODEL_FEATURE_COLUMNS_H_
#define TILEFARM_COST_MODEL_FEATURE_COLUMNS_H_

#include <span>
#include <string>
#include <vector>

namespace tilefarm::cost_model {

struct FeatureColumn {
  const char* name;
  const char* meaning;
};

// The number of columns of each group, and how often each group repeats, in the
// order of a row.
inline constexpr int kOpColumns = 15;
inline constexpr int kLoopKindColumns = 5;
inline constexpr int kLoopKinds = 3;  // vectorized, unrolled, parallel
inline constexpr int kInnerLoopColumns = 6;
inline constexpr int kInnerLoops = 3;  // innermost, second, third
inline constexpr int kNestColumns = 10;
inline constexpr int kBufferColumns = 21;
inline constexpr int kBuffers = 5;
inline constexpr int kCurvePoints = 10;
inline constexpr int kCacheColumns = 5;
inline constexpr int kCaches = 3;  // L1, L2, L3
inline constexpr int kRegisterColumns = 11;
inline constexpr int kParallelColumns = 3;
inline constexpr int kEstimateColumns = 2;

inline constexpr int kColumns = kOpColumns + kLoopKindColumns * kLoopKinds +
                                kInnerLoopColumns * kInnerLoops + kNestColumns +
                                kBufferColumns * kBuffers + kCurvePoints +
                                kCacheColumns * kCaches + kRegisterColumns +
                                kParallelColumns + kEstimateColumns;

// "float_add", "vectorized.product", "buffer0.unique_bytes", ...: kColumns
// different names.
std::vector<std::string> FeatureNames();
// The meanings, in the same order.
std::vector<std::string> FeatureMeanings();

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_FEATURE_COLUMNS_H_
