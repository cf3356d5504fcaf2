// Nests of the kinds that some primitives want: products of matrices whose
// elements and extents fit tensor intrinsics, softmax, 3x3 convolutions, and
// transposed convolutions. Their shapes, layouts, dtypes, order of loops and
// terms are random, so that not every one fits.
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

  // Writes one, with inputs and an output of its own; what it computes may be
  // read from then on.
  void Motif();

 private:
  void Product();
  void Softmax();
  void Convolution();
  void Transposed();

  // The number of a new tensor: an input, an output or a temporary.
  int Input(const std::string& dtype, std::vector<int64_t> shape);
  int Output(const std::string& dtype, std::vector<int64_t> shape);
  int Temporary(const std::string& dtype, std::vector<int64_t> shape);
  int NewTensor(const char* prefix, const std::string& dtype,
                std::vector<int64_t> shape, bool parameter, bool input);
  // All of the tensor is written, with values of that magnitude.
  void Written(int tensor, double magnitude, bool exact);
  // init and update of the open block: `element` starts at `first`.
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
