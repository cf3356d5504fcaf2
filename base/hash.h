// SHA-256: the identity of workloads, artifacts, candidates and devices.
// Identical on every platform; never absl::Hash, which is salted per process.
#ifndef TILEFARM_BASE_HASH_H_
#define TILEFARM_BASE_HASH_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tilefarm {

// 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

// The first eight bytes of the digest, big-endian: for seeds and bucketing.
uint64_t Sha256Prefix(std::string_view bytes);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_HASH_H_
