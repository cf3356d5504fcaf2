// One store of a loop nest with what several readers compute from it: how many
// bytes each inner part of its loops touches. Private to cost_model/.
#ifndef TILEFARM_COST_MODEL_STORE_VIEW_H_
#define TILEFARM_COST_MODEL_STORE_VIEW_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "cost_model/loop_nest.h"

namespace tilefarm::cost_model {

inline constexpr double kLineBytes = 64;
// Lines so far apart, or multiples of it, share a set of the first-level cache:
// a page, so that addresses select sets before they are translated. Caches
// behind it are indexed by addresses of memory, or by hashes of them.
inline constexpr double kL1WayBytes = 4096;

inline double CeilDiv(double a, double b) { return std::ceil(a / b); }

// The elements that one access touches in the nest from depth d on.
struct Footprint {
  double elements;  // distinct ones
  double bytes;
  double lines;
  // The first-level cache that holds it, at least: more than its bytes where
  // its rows are so far apart that they share sets.
  double l1_bytes;
};

// Shared data of a store for several groups. Index d of a per-depth vector is
// the part of the nest inside of the first d loops.
class StoreView {
 public:
  StoreView(const LoopNest& nest, const NestStore& store)
      : nest_(nest), store_(store), depth_(store.loops.size()) {
    FindMoves();
    iterations_.assign(depth_ + 1, 1);
    for (size_t d = depth_; d-- > 0;) {
      iterations_[d] =
          iterations_[d + 1] * static_cast<double>(store.loops[d].extent);
    }
    footprints_.reserve(store.accesses.size() * (depth_ + 1));
    for (size_t a = 0; a < store.accesses.size(); ++a) ComputeFootprints(a);
    total_bytes_.assign(depth_ + 1, 0);
    for (size_t a = 0; a < store.accesses.size(); ++a) {
      for (size_t d = 0; d <= depth_; ++d) {
        total_bytes_[d] += At(a, d).bytes;
      }
    }
    OrderAccesses();
  }

  size_t depth() const { return depth_; }
  const NestLoop& loop(size_t l) const { return store_.loops[l]; }
  const NestStore& store() const { return store_; }
  double iterations(size_t d) const { return iterations_[d]; }
  double total_bytes(size_t d) const { return total_bytes_[d]; }
  // Whether what the nest from depth d on touches fits into a cache of the
  // level, from 0.
  bool Fits(size_t d, int level, double capacity) const {
    if (total_bytes_[d] > capacity) return false;
    for (size_t a = 0; level == 0 && a < store_.accesses.size(); ++a) {
      if (At(a, d).l1_bytes > capacity) return false;
    }
    return true;
  }
  const Footprint& At(size_t access, size_t d) const {
    return footprints_[access * (depth_ + 1) + depth_ - d];
  }
  const NestBuffer& BufferOf(size_t access) const {
    return nest_.buffers[store_.accesses[access].buffer];
  }
  // Access numbers: the written one, then by bytes touched.
  std::span<const size_t> order() const { return order_; }

  // Whether the index of the access changes with the loop.
  bool Moves(size_t access, size_t l) const {
    return moves_[access * depth_ + l] != 0;
  }
  bool IsReduction(size_t l) const {
    return loop(l).extent > 1 && !Moves(0, l);
  }
  // The distance in memory, in elements, between iterations of the loop.
  double Stride(size_t access, size_t l) const {
    const NestAccess& a = store_.accesses[access];
    const std::vector<int64_t>& shape = BufferOf(access).shape;
    double stride = 0, row = 1;
    for (size_t dim = a.offset_spans.size(); dim-- > 0;) {
      stride += row * a.strides[dim * depth_ + l];
      if (dim < shape.size()) row *= static_cast<double>(shape[dim]);
    }
    return std::abs(stride);
  }

 private:
  void FindMoves() {
    moves_.assign(store_.accesses.size() * depth_, 0);
    for (size_t a = 0; a < store_.accesses.size(); ++a) {
      const std::vector<double>& spans = store_.accesses[a].spans;
      for (size_t at = 0, l = 0; at < spans.size(); ++at) {
        moves_[a * depth_ + l] |= spans[at] > 0;
        if (++l == depth_) l = 0;
      }
    }
  }

  void ComputeFootprints(size_t access) {
    const NestAccess& a = store_.accesses[access];
    const NestBuffer& buffer = BufferOf(access);
    const size_t dims = a.offset_spans.size();
    const double element = buffer.element_bytes;
    // The range of each dimension's index, and the number of elements in it.
    absl::InlinedVector<double, 8> ranges(a.offset_spans.begin(),
                                          a.offset_spans.end());
    absl::InlinedVector<double, 8> counts(dims);
    const auto size = [&](size_t dim) {
      return dim < buffer.shape.size() ? static_cast<double>(buffer.shape[dim])
                                       : 1;
    };
    const auto count = [&](size_t dim) {
      counts[dim] = std::min(std::floor(ranges[dim]) + 1, size(dim));
    };
    for (size_t dim = 0; dim < dims; ++dim) count(dim);
    double elements = 1, run = 1;  // touched, and adjacent
    uint64_t steps = 0;            // between runs, in elements: all their bits
    double moving = 1;             // iterations of loops that move the access
    for (size_t d = depth_ + 1; d-- > 0;) {
      const bool moves = d < depth_ && Moves(access, d);
      if (moves) moving *= static_cast<double>(loop(d).extent);
      // A loop that repeats the part, all of which was touched, changes
      // nothing.
      if (d < depth_ && !moves && footprints_.back().elements == elements) {
        footprints_.push_back(Footprint(footprints_.back()));
        continue;
      }
      Footprint f;
      if (moves || d == depth_) {
        elements = run = 1;
        steps = 0;
        bool adjacent = true;
        double step = 1;
        for (size_t dim = dims; dim-- > 0;) {
          const double span = moves ? a.spans[dim * depth_ + d] : 0;
          if (span > 0) {
            ranges[dim] += span;
            count(dim);
          }
          elements *= counts[dim];
          if (adjacent) {
            run *= counts[dim];
          } else if (counts[dim] > 1) {
            steps |= static_cast<uint64_t>(step);
          }
          adjacent = adjacent && counts[dim] == size(dim);
          step *= size(dim);
        }
      }
      f.elements = std::min(elements, moving * std::max(a.loads, 1) * a.group +
                                          (a.loads > 0 && a.writes ? 1 : 0));
      f.bytes = f.elements * element;
      f.lines =
          std::max(1.0, f.elements / run) * CeilDiv(run * element, kLineBytes);
      f.lines = std::min(f.lines, f.elements);
      f.l1_bytes = L1Bytes(f.bytes, f.elements / run, run * element,
                           static_cast<double>(steps & -steps) * element);
      footprints_.push_back(f);
    }
  }

  // `apart`: the largest power of two that all distances of runs are multiples
  // of.
  static double L1Bytes(double bytes, double runs, double run_bytes,
                        double apart) {
    apart = std::min(apart, kL1WayBytes);
    // Places that no two runs share.
    if (apart <= run_bytes || runs * apart <= kL1WayBytes) return bytes;
    return std::max(bytes, runs * apart);
  }

  void OrderAccesses() {
    for (size_t a = 0; a < store_.accesses.size(); ++a) order_.push_back(a);
    std::stable_sort(order_.begin() + 1, order_.end(), [&](size_t x, size_t y) {
      return At(x, 0).bytes > At(y, 0).bytes;
    });
  }

  const LoopNest& nest_;
  const NestStore& store_;
  const size_t depth_;
  // Stored inline except for very deep nests.
  absl::InlinedVector<double, 40> iterations_;
  absl::InlinedVector<double, 40> total_bytes_;
  absl::InlinedVector<Footprint, 160> footprints_;  // innermost part first
  absl::InlinedVector<uint8_t, 160> moves_;         // by access and loop
  absl::InlinedVector<size_t, 8> order_;
};

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_STORE_VIEW_H_
