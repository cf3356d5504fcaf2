// Choices out of bytes: a fuzzer's, or random ones of a seed. After the last
// byte every choice is the first.
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
  // Below `count`, which is 1 at least.
  size_t Below(size_t count);
  // True for `n` in 256.
  bool Chance(int n) { return Byte() < n; }

 private:
  std::string_view bytes_;
};

// Strings worth saying: those heard, and odd ones.
using Words = std::vector<std::string>;

// One of `words`, perhaps damaged; at times long, empty or not UTF-8 at all.
std::string AnyText(ByteSource& source, const Words& words);
// A text with some bytes changed, cut, doubled or moved.
std::string Damaged(ByteSource& source, std::string text);
// Sets every field to something, or leaves it as it is.
void FillMessage(ByteSource& source, const Words& words,
                 google::protobuf::Message* message);

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_BYTE_SOURCE_H_
