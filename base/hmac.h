// HMAC-SHA-256 (RFC 2104).
#ifndef TILEFARM_BASE_HMAC_H_
#define TILEFARM_BASE_HMAC_H_

#include <string>
#include <string_view>

namespace tilefarm {

// 64 lower-case hexadecimal digits.
std::string HmacSha256Hex(std::string_view key, std::string_view text);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_HMAC_H_
