// Compact forms of two columns that every record has.
//
//   digest     64 lower-case hexadecimal digits   32 bytes
//   samples    JSON array of seconds              8 bytes each: the bits of the
//                                                 double, big-endian
//
// A value that has no compact form is stored as it was, as text: the type of
// the column (BLOB or TEXT) tells the two apart. The view `records` gives the
// text of both in plain SQL.
#ifndef TILEFARM_DATABASE_PACKED_COLUMNS_H_
#define TILEFARM_DATABASE_PACKED_COLUMNS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::database {

// nullopt: not 64 lower-case hexadecimal digits.
std::optional<std::string> PackDigest(std::string_view text);

// nullopt: there are none, or one is not between 2^-60 and 2^40 seconds, which
// is what the view can decode.
std::optional<std::string> PackSamples(std::span<const double> seconds);
// DataLoss: not made by PackSamples.
absl::StatusOr<std::vector<double>> UnpackSamples(std::string_view bytes);

// "[0.001,0.0011]"; SQL's JSON functions read it. NaN is null.
std::string SamplesToText(std::span<const double> seconds);
// DataLoss: not an array.
absl::StatusOr<std::vector<double>> SamplesFromText(std::string_view text);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_PACKED_COLUMNS_H_
