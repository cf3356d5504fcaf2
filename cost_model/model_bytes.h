// Bytes of stored models: fields (base/byte_stream.h), sealed with a kind, a
// version and a checksum, so that damage is found before anything is used.
//
//   "TFCM" | version u32 | kind: size u32, text | body | first 8 bytes of the
//   SHA-256 of all before, big-endian
#ifndef TILEFARM_COST_MODEL_MODEL_BYTES_H_
#define TILEFARM_COST_MODEL_MODEL_BYTES_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tilefarm::cost_model {

std::string Seal(std::string_view kind, std::string_view body);
// The body, within `bytes`. DataLoss: damaged, or of another kind or version.
absl::StatusOr<std::string_view> Unseal(std::string_view kind,
                                        std::string_view bytes);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_MODEL_BYTES_H_
