// Nests for primitives that need special forms: matrix products whose elements
// and extents fit tensor intrinsics, softmax, several reductions in one block,
// extremes with their indices, 3x3 convolutions, and transposed convolutions.
// Shapes, layouts, dtypes, order of loops and terms are random, so not all of
// them fit.
#ifndef TILEFARM_TESTS_PROPERTY_RANDOM_MOTIFS_H_
#define TILEFARM_TESTS_PROPERTY_RANDOM_MOTIFS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/property/random_expressions.h"

namespace tilefarm::property {

class RandomMotifs : protected RandomExpressions {
 protected:
  explicit RandomMotifs(Rng& rng) : RandomExpressions(rng) {}

  // Writes one nest, with its own inputs and output; later reads may use its
  // results.
  void Motif();

 private:
  void Product();
  void Softmax();
  void Moments();
  void Extreme();
  void Convolution();
  void Transposed();

  // The number of a new tensor: an input, an output or a temporary.
  int Input(const std::string& dtype, std::vector<int64_t> shape);
  int Output(const std::string& dtype, std::vector<int64_t> shape);
  int Temporary(const std::string& dtype, std::vector<int64_t> shape);
  int NewTensor(const char* prefix, const std::string& dtype,
                std::vector<int64_t> shape, bool parameter, bool input);
  // Declares that all of the tensor is written, with values of this magnitude.
  void Written(int tensor, double magnitude, bool exact);
  // Writes init and update of the open block: `element` starts at `first`.
  void Reduce(const std::string& element, const std::string& first,
              const std::string& update);
  std::string At(int tensor, const std::vector<std::string>& indices) const {
    return ElementOf(tensors_[static_cast<size_t>(tensor)], indices);
  }
  template <typename T>
  T PickOf(const std::vector<T>& items) {
    return items[rng_.Below(items.size())];
  }
};

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_RANDOM_MOTIFS_H_
