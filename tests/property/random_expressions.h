// The parts of random programs: tensors, index expressions that stay within
// bounds, and values of known magnitude.
#ifndef TILEFARM_TESTS_PROPERTY_RANDOM_EXPRESSIONS_H_
#define TILEFARM_TESTS_PROPERTY_RANDOM_EXPRESSIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"

namespace tilefarm::property {

inline constexpr int64_t kInputMagnitude = 3;
inline constexpr int64_t kMaxIterations = 400;

struct TensorDecl {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  bool parameter = false;
  bool input = false;
  double magnitude = kInputMagnitude;
  bool exact = true;
};

// An int64 scalar that is in scope: `low <= name < high`.
struct IndexVar {
  std::string name;
  int64_t low = 0, high = 1;
};

// A scalar of any dtype in scope, made by a let.
struct ScalarVar {
  std::string name;
  std::string dtype;
  double magnitude = 0;
  bool exact = true;
};

struct Value {
  std::string text;
  double magnitude = 0;
  bool exact = true;
};

struct LoopDecl {
  std::string name;
  int64_t low = 0, extent = 1;
};

bool IsFloat(const std::string& dtype);
// Values beyond this magnitude are reduced before they are stored: float32 has
// all integers up to 2^24, float16 up to 2^11, bfloat16 up to 2^8.
double ExactMagnitude(const std::string& dtype);

// An axis of a block with a loop of its own.
struct Axis {
  int64_t extent = 1;
  bool reduces = false;
};

// A program that is written line by line. Expressions may use the current
// contents of `tensors_`, `indices_` and `scalars_`.
class RandomExpressions {
 protected:
  explicit RandomExpressions(Rng& rng) : rng_(rng) {}

  // --- Declarations ---
  std::string RandomType();
  int64_t RandomExtent();
  void AddTensor(std::string name, bool parameter, bool input);
  std::vector<int> ParameterIndices() const;
  static std::string ShapeText(const std::vector<int64_t>& shape);
  std::string Header() const;
  // --- Text ---
  void Line(const std::string& text);
  std::string Fresh(const char* prefix);
  // --- Index expressions ---
  // One index within [0, extent).
  std::string Index(int64_t extent, bool plain_only = false);
  std::string Access(const TensorDecl& t, bool plain_only = false);
  // --- Values ---
  Value Constant(const std::string& dtype);
  const TensorDecl* ReadableOf(const std::string& dtype);
  Value Leaf(const std::string& dtype);
  // A bool that does not depend on the order of computation.
  std::string Condition();
  Value Expr(const std::string& dtype, int depth);
  // Reduces a value to the range in which floats are exact.
  Value Bounded(const Value& value, const TensorDecl& t);
  void Wrote(TensorDecl& t, const Value& value);
  TensorDecl& Target(bool to_output);
  // --- Statements ---
  void Store(TensorDecl& t, const std::string& at, const Value& value);
  void OpenLoop(int64_t extent, int64_t low);
  static std::string ElementOf(const TensorDecl& t,
                               const std::vector<std::string>& at);
  // Opens loops and a block over the axes and returns the block's variables;
  // with `shuffled`, the loops have a random order. CloseBlock closes them.
  std::vector<std::string> OpenBlock(const char* name,
                                     const std::vector<Axis>& axes,
                                     bool shuffled);
  void CloseBlock();

  Rng& rng_;
  std::vector<TensorDecl> tensors_;
  std::vector<int> readable_;          // tensors that reads may choose
  std::vector<int> pending_readable_;  // written in the current nest
  std::vector<LoopDecl> loops_;
  std::vector<IndexVar> indices_;
  std::vector<ScalarVar> scalars_;
  std::string body_;
  int depth_ = 1;
  int next_name_ = 0;
  int next_block_ = 0;
  bool wrote_output_ = false;
  bool exact_ = true;
};

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_RANDOM_EXPRESSIONS_H_
