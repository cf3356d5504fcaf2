#include "tests/property/random_text_program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/printer.h"
#include "tests/property/random_motifs.h"
#include "tests/property/random_program.h"

namespace tilefarm::property {
namespace {

class Generator : private RandomMotifs {
 public:
  explicit Generator(Rng& rng) : RandomMotifs(rng) {}

  TextProgram Make() {
    const int inputs = static_cast<int>(rng_.Between(1, 3));
    for (int i = 0; i < inputs; ++i) {
      AddTensor(absl::StrCat("A", i), /*parameter=*/true, /*input=*/true);
    }
    const int outputs = static_cast<int>(rng_.Between(1, 2));
    for (int i = 0; i < outputs; ++i) {
      AddTensor(absl::StrCat("O", i), /*parameter=*/true, /*input=*/false);
    }
    const int temporaries = static_cast<int>(rng_.Below(4));
    for (int i = 0; i < temporaries; ++i) {
      AddTensor(absl::StrCat("W", i), /*parameter=*/false, /*input=*/false);
    }
    // Most temporaries are fully written before they are read.
    std::vector<int> unfilled;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (!tensors_[t].parameter && rng_.Chance(0.85)) {
        unfilled.push_back(static_cast<int>(t));
      }
    }
    readable_ = ParameterIndices();
    const int nests = static_cast<int>(rng_.Between(1, 4));
    // Half of the programs mostly have regular nests, as operators do:
    // primitives that move blocks reject most of the others.
    const double regular = rng_.Chance(0.5) ? 0.85 : 0.0;
    const int motif_at =
        rng_.Chance(0.3) ? static_cast<int>(rng_.Below(nests)) : -1;
    for (int i = 0; i < nests; ++i) {
      if (i == motif_at) Motif();
      if (rng_.Chance(regular)) {
        RegularNest(unfilled);
      } else if (!unfilled.empty() && rng_.Chance(0.8)) {
        FillNest(unfilled.back());
        readable_.push_back(unfilled.back());
        unfilled.pop_back();
      } else {
        Nest();
      }
    }
    // The program must have an output.
    if (!wrote_output_ && rng_.Chance(regular)) {
      unfilled.clear();
      RegularNest(unfilled);
    } else if (!wrote_output_ || rng_.Chance(0.5)) {
      Nest(/*to_output=*/true);
    }
    return {Header() + body_, exact_};
  }

 private:
  // --- Statements ---
  void Let() {
    if (rng_.Chance(0.3) && !indices_.empty()) {
      const IndexVar v = indices_[rng_.Below(indices_.size())];
      if (v.low < 0) return;
      const std::string name = Fresh("k");
      const int64_t shift = rng_.Between(0, 2);
      Line(absl::StrCat(name, " = ", v.name, " + ", shift));
      indices_.push_back({name, v.low + shift, v.high + shift});
      return;
    }
    const std::string dtype = tensors_[rng_.Below(tensors_.size())].dtype;
    const Value value = Expr(dtype, 1);
    const std::string name = Fresh("c");
    Line(absl::StrCat(name, " = ", value.text));
    scalars_.push_back({name, dtype, value.magnitude, value.exact});
  }

  void Statement(bool to_output, int nesting) {
    TensorDecl& t = Target(to_output);
    const size_t indices = indices_.size(), scalars = scalars_.size();
    if (nesting > 0 && rng_.Chance(0.2)) {
      Line(absl::StrCat("if ", Condition(), ":"));
      ++depth_;
      Statement(to_output, nesting - 1);
      --depth_;
      if (rng_.Chance(0.4)) {
        Line("else:");
        ++depth_;
        Statement(to_output, nesting - 1);
        --depth_;
      }
    } else if (nesting > 0 && rng_.Chance(0.12)) {
      const std::string name = Fresh("q");
      const int64_t extent = rng_.Between(1, 4);
      Line(absl::StrCat("for ", name, " in range(", extent, "):"));
      indices_.push_back({name, 0, extent});
      ++depth_;
      Statement(to_output, nesting - 1);
      --depth_;
      indices_.resize(indices);
    } else {
      Store(t, Access(t, rng_.Chance(0.7)),
            Expr(t.dtype, static_cast<int>(rng_.Below(4))));
    }
    // Declarations of a branch or a loop end with it.
    indices_.resize(indices);
    scalars_.resize(scalars);
  }

  // init and update of a reduction into one element; if `proper`, the indices
  // use only spatial variables.
  void Reduction(bool to_output, const std::vector<IndexVar>& spatial,
                 int64_t terms) {
    const bool proper = rng_.Chance(0.85);
    const std::vector<IndexVar> all = indices_;
    TensorDecl& t = Target(to_output);
    indices_ = proper ? spatial : all;
    const std::string at = Access(t, rng_.Chance(0.8));
    indices_ = all;
    const std::string init_at = rng_.Chance(0.04) ? Access(t) : at;
    const std::string read_at = rng_.Chance(0.05) ? Access(t) : at;
    ReduceInto(t, at, init_at, read_at, proper ? spatial : all, terms);
  }

  // `init_at` gets the first value; `at` gets `read_at` plus a term.
  void ReduceInto(TensorDecl& t, const std::string& at,
                  const std::string& init_at, const std::string& read_at,
                  const std::vector<IndexVar>& init_indices, int64_t terms) {
    const std::vector<IndexVar> all = indices_;
    indices_ = init_indices;
    Value start = Constant(t.dtype);
    if (rng_.Chance(0.2)) start = Expr(t.dtype, 1);
    if (rng_.Chance(0.6) && t.dtype != "bool") {
      start = {absl::StrCat("T.", t.dtype, IsFloat(t.dtype) ? "(0.0)" : "(0)"),
               0};
    }
    Line("with T.init():");
    ++depth_;
    Store(t, init_at, start);
    --depth_;
    indices_ = all;
    const Value term = Expr(t.dtype, static_cast<int>(rng_.Between(1, 2)));
    Value result{"", 0, term.exact && t.exact && start.exact};
    const double total =
        start.magnitude + static_cast<double>(terms) * term.magnitude;
    const size_t kind = t.dtype == "bool" ? 9 : rng_.Below(8);
    if (kind < 5 && total <= ExactMagnitude(t.dtype)) {
      result.text = absl::StrCat(read_at, " + ", term.text);
      result.magnitude = total;
    } else if (kind == 9) {
      result.text = absl::StrCat(rng_.Chance(0.5) ? "T.And(" : "T.Or(", read_at,
                                 ", ", term.text, ")");
      result.magnitude = 1;
    } else {
      result.text = absl::StrCat(rng_.Chance(0.5) ? "T.max(" : "T.min(",
                                 read_at, ", ", term.text, ")");
      result.magnitude = std::max(start.magnitude, term.magnitude);
    }
    Line(absl::StrCat(at, " = ", result.text));
    Wrote(t, result);
  }

  // --- Blocks ---
  void Block(bool to_output) {
    if (rng_.Chance(0.04)) {
      Line(absl::StrCat(
          "if ", loops_.empty() ? "T.bool(True)" : LoopCondition(), ":"));
      ++depth_;
      BlockBody(to_output);
      --depth_;
      return;
    }
    BlockBody(to_output);
  }

  std::string LoopCondition() {
    const LoopDecl& loop = loops_[rng_.Below(loops_.size())];
    return absl::StrCat(loop.name, " < ",
                        loop.low + rng_.Between(1, loop.extent));
  }

  void BlockBody(bool to_output) {
    static const char* const kNames[] = {"blk", "B", "C", "T_add", "compute"};
    Line(absl::StrCat("with T.block(\"", kNames[rng_.Below(5)], next_block_++,
                      "\"):"));
    ++depth_;
    const std::vector<IndexVar> outer_indices = indices_;
    const std::vector<ScalarVar> outer_scalars = scalars_;
    indices_.clear();
    std::vector<IndexVar> spatial;
    int64_t terms = 1;
    bool reduces = false;
    const bool wants_reduction = rng_.Chance(0.4);
    std::vector<std::string> axes;
    std::string where;
    std::vector<LoopDecl> loops = loops_;
    rng_.Shuffle(loops);
    for (size_t i = 0; i < loops.size(); ++i) {
      const LoopDecl& loop = loops[i];
      if (rng_.Chance(0.06)) continue;  // repeats the block
      std::string binding = loop.name;
      int64_t low = loop.low, high = loop.low + loop.extent;
      const double kind = rng_.Uniform();
      if (kind < 0.1 && i + 1 < loops.size() && low == 0 &&
          loops[i + 1].low == 0) {
        binding = absl::StrCat(loop.name, " * ", loops[i + 1].extent, " + ",
                               loops[i + 1].name);
        high = loop.extent * loops[i + 1].extent;
        ++i;
      } else if (kind < 0.14 && low == 0) {
        const int64_t c = rng_.Between(2, 3);
        binding = absl::StrCat(loop.name, " // ", c);
        high = (high - 1) / c + 1;
      } else if (kind < 0.18 && low == 0) {
        const int64_t c = rng_.Between(2, 3);
        binding = absl::StrCat(loop.name, " % ", c);
        high = std::min(high, c);
      } else if (kind < 0.22) {
        const int64_t shift = rng_.Between(1, 3);
        binding = absl::StrCat(loop.name, " + ", shift);
        low += shift;
        high += shift;
      } else if (kind < 0.25 && i + 1 < loops.size() && low == 0 &&
                 loops[i + 1].low == 0) {
        // Overlapping: a halo.
        binding = absl::StrCat(loop.name, " + ", loops[i + 1].name);
        high = loop.extent + loops[i + 1].extent - 1;
        ++i;
      }
      if (where.empty() && high - low > 2 && rng_.Chance(0.08)) {
        // A tail: the domain is smaller than the range of the loops.
        high -= rng_.Between(1, (high - low) / 2);
        where = absl::StrCat(binding, " < ", high);
      }
      const bool reduce = wants_reduction && rng_.Chance(0.5);
      const std::string name = Fresh("v");
      // Rarely, the range starts before the binding does.
      const std::string domain = rng_.Chance(low == 0 ? 0.95 : 0.1)
                                     ? absl::StrCat(high)
                                     : absl::StrCat("(", low, ", ", high, ")");
      axes.push_back(absl::StrCat(name, " = T.axis.",
                                  reduce ? "reduce(" : "spatial(", domain, ", ",
                                  binding, ")"));
      indices_.push_back({name, low, high});
      if (reduce) {
        reduces = true;
        terms *= high - low;
      } else {
        spatial.push_back(indices_.back());
      }
    }
    if (axes.empty() || (wants_reduction && !reduces)) {
      // A variable bound to a constant.
      const std::string name = Fresh("v");
      axes.push_back(absl::StrCat(name, " = T.axis.",
                                  wants_reduction ? "reduce" : "spatial",
                                  "(1, 0)"));
      indices_.push_back({name, 0, 1});
      if (wants_reduction) {
        reduces = true;
      } else {
        spatial.push_back(indices_.back());
      }
    }
    if (where.empty() && !loops_.empty() && rng_.Chance(0.05)) {
      where = LoopCondition();
    }
    for (const std::string& axis : axes) Line(axis);
    if (!where.empty()) Line(absl::StrCat("T.where(", where, ")"));
    int64_t repeats = 1;
    for (const LoopDecl& loop : loops_) repeats *= loop.extent;
    if (reduces && rng_.Chance(0.9)) {
      Reduction(to_output, spatial, std::max(terms, repeats));
    } else {
      const int statements = rng_.Chance(0.75) ? 1 : 2;
      for (int s = 0; s < statements; ++s) {
        if (rng_.Chance(0.2)) Let();
        Statement(to_output, 2);
      }
    }
    indices_ = outer_indices;
    scalars_ = outer_scalars;
    --depth_;
  }

  // The first writer of a temporary: writes every element once.
  void FillNest(int tensor) {
    TensorDecl& t = tensors_[tensor];
    std::vector<Axis> axes;
    for (const int64_t extent : t.shape) axes.push_back({extent, false});
    const std::vector<std::string> at =
        OpenBlock("fill", axes, /*shuffled=*/false);
    Store(t, ElementOf(t, at), Expr(t.dtype, static_cast<int>(rng_.Below(3))));
    CloseBlock();
  }

  // A complete block or a reduction into every element of an output, or of a
  // temporary of `unfilled`, which is removed from there.
  void RegularNest(std::vector<int>& unfilled) {
    int target = -1;
    if (!unfilled.empty()) {
      target = unfilled.back();
      unfilled.pop_back();
    } else {
      for (size_t i = 0; i < tensors_.size(); ++i) {
        if (tensors_[i].parameter && !tensors_[i].input &&
            (target < 0 || rng_.Chance(0.5))) {
          target = static_cast<int>(i);
        }
      }
    }
    TensorDecl& t = tensors_[target];
    int64_t iterations = 1;
    std::vector<Axis> axes;
    for (const int64_t extent : t.shape) {
      axes.push_back({extent, false});
      iterations *= extent;
    }
    const int reduce =
        rng_.Chance(0.45) ? static_cast<int>(rng_.Between(1, 2)) : 0;
    int64_t terms = 1;
    for (int i = 0; i < reduce; ++i) {
      const int64_t extent = RandomExtent();
      axes.push_back({extent * iterations > 4 * kMaxIterations ? 1 : extent,
                      /*reduces=*/true});
      iterations *= axes.back().extent;
      terms *= axes.back().extent;
    }
    std::vector<std::string> at = OpenBlock("R", axes, rng_.Chance(0.4));
    at.resize(t.shape.size());
    const std::vector<IndexVar> spatial(
        indices_.begin(),
        indices_.begin() + static_cast<std::ptrdiff_t>(t.shape.size()));
    const std::string element = ElementOf(t, at);
    // A block of its own reads only other buffers.
    const std::vector<int> readable = readable_;
    std::erase(readable_, target);
    if (reduce > 0) {
      ReduceInto(t, element, element, element, spatial, terms);
    } else {
      Store(t, element, Expr(t.dtype, static_cast<int>(rng_.Below(4))));
    }
    readable_ = readable;
    if (std::find(readable_.begin(), readable_.end(), target) ==
        readable_.end()) {
      readable_.push_back(target);
    }
    CloseBlock();
  }

  void Nest(bool to_output = false) {
    const int depth = depth_;
    loops_.clear();
    pending_readable_.clear();
    const int count = static_cast<int>(rng_.Between(0, 4));
    int64_t iterations = 1;
    // Extents of a tensor make plain accesses possible.
    const TensorDecl& like = tensors_[rng_.Below(tensors_.size())];
    for (int i = 0; i < count; ++i) {
      int64_t extent =
          i < static_cast<int>(like.shape.size()) && rng_.Chance(0.7)
              ? like.shape[i]
              : RandomExtent();
      if (iterations * extent > kMaxIterations) extent = 1;
      iterations *= extent;
      OpenLoop(extent, rng_.Chance(0.03) ? rng_.Between(1, 3) : 0);
      // A block next to the loops that follow.
      if (rng_.Chance(0.07)) Block(to_output);
    }
    const int blocks = rng_.Chance(0.75) ? 1 : 2;
    for (int b = 0; b < blocks; ++b) Block(to_output);
    depth_ = depth;
    loops_.clear();
    for (const int t : pending_readable_) {
      if (std::find(readable_.begin(), readable_.end(), t) == readable_.end()) {
        readable_.push_back(t);
      }
    }
  }
};

}  // namespace

TextProgram RandomTextProgram(Rng& rng) { return Generator(rng).Make(); }

TextProgram RandomTextProgram(Rng& rng, double operator_share) {
  if (!rng.Chance(operator_share)) return RandomTextProgram(rng);
  return {ir::Print(*RandomProgram(rng)), /*exact=*/false};
}

}  // namespace tilefarm::property
