// Makes choices from bytes: a fuzzer's, or random ones of a seed. After the
// last byte, every choice is the first option.
#ifndef TILEFARM_TESTS_FUZZ_BYTE_SOURCE_H_
#define TILEFARM_TESTS_FUZZ_BYTE_SOURCE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/message.h"

namespace tilefarm::fuzz {

class ByteSource {
 public:
  explicit ByteSource(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  uint8_t Byte();
  uint64_t Bits();
  // A number below `count`, which is at least 1.
  size_t Below(size_t count);
  // True with a probability of `n` in 256.
  bool Chance(int n) { return Byte() < n; }

 private:
  std::string_view bytes_;
};

// Interesting strings: those received, and unusual ones.
using Words = std::vector<std::string>;

// One of `words`, perhaps damaged; sometimes long, empty or not UTF-8.
std::string AnyText(ByteSource& source, const Words& words);
// A text with some bytes changed, cut, doubled or moved.
std::string Damaged(ByteSource& source, std::string text);
// Sets every field to some value, or leaves it unset.
void FillMessage(ByteSource& source, const Words& words,
                 google::protobuf::Message* message);

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_BYTE_SOURCE_H_
