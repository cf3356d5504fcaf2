// The parameters of a request's query: "state=done&limit=10".
#ifndef TILEFARM_SERVER_API_QUERY_H_
#define TILEFARM_SERVER_API_QUERY_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::api {

// Text with %XX (and, in a query, +) replaced. InvalidArgument: not two
// hexadecimal digits, or a control character.
absl::StatusOr<std::string> Unescape(std::string_view text, bool plus);

class Query {
 public:
  // InvalidArgument: damaged, or a parameter is given twice.
  static absl::StatusOr<Query> Parse(std::string_view text);

  // InvalidArgument: there is another parameter than these.
  absl::Status Allow(std::initializer_list<std::string_view> names) const;
  // "" where it is not given.
  std::string Text(const std::string& name) const;
  // InvalidArgument: no number from `least` to `most`.
  absl::StatusOr<int64_t> Number(const std::string& name, int64_t otherwise,
                                 int64_t least, int64_t most) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_QUERY_H_
