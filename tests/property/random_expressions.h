// The parts that random programs are made of: tensors, index expressions that
// stay within bounds, and values whose magnitude is known.
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
// Beyond this, values are brought back before they are stored: float32 counts
// to 2^24 without a gap, float16 to 2^11, bfloat16 to 2^8.
double ExactMagnitude(const std::string& dtype);

// An axis of a block with a loop of its own.
struct Axis {
  int64_t extent = 1;
  bool reduces = false;
};

// A program that is being written, line by line. What expressions may use is
// what stands in `tensors_`, `indices_` and `scalars_` at that time.
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
  // A bool that is the same in every order of computation.
  std::string Condition();
  Value Expr(const std::string& dtype, int depth);
  // Brings a value back into the range in which floats are exact.
  Value Bounded(const Value& value, const TensorDecl& t);
  void Wrote(TensorDecl& t, const Value& value);
  TensorDecl& Target(bool to_output);
  // --- Statements ---
  void Store(TensorDecl& t, const std::string& at, const Value& value);
  void OpenLoop(int64_t extent, int64_t low);
  static std::string ElementOf(const TensorDecl& t,
                               const std::vector<std::string>& at);
  // Loops and a block over the axes, whose variables it returns; the loops
  // stand in any order where `shuffled`. CloseBlock ends it all.
  std::vector<std::string> OpenBlock(const char* name,
                                     const std::vector<Axis>& axes,
                                     bool shuffled);
  void CloseBlock();

  Rng& rng_;
  std::vector<TensorDecl> tensors_;
  std::vector<int> readable_;          // tensors that reads may choose
  std::vector<int> pending_readable_;  // written in the nest at hand
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
