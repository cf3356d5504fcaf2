#include "server/security/token.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace tilefarm::security {
namespace {

constexpr int kTokenBytes = 32;
constexpr size_t kMaxName = 64;
constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%SZ";

}  // namespace

std::string NewToken() {
  char bytes[kTokenBytes];
  TF_CHECK(getrandom(bytes, sizeof bytes, 0) == kTokenBytes);
  return absl::StrCat("tilefarm_", absl::BytesToHexString(
                                       absl::string_view(bytes, sizeof bytes)));
}

std::string TokenHash(std::string_view token) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof digest));
}

bool SameHash(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

absl::Status CheckName(std::string_view name) {
  bool good = !name.empty() && name.size() <= kMaxName;
  for (const char c : name) {
    good = good && (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                    c == '.' || c == '-' || c == '_' || c == '@');
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a name is 1 to ", kMaxName, " letters, digits, '.', '-', '_' or '@'"));
}

absl::StatusOr<NewTokenRow> MakeToken(const std::string& name, Role role,
                                      absl::Duration lifetime, absl::Time now) {
  TF_RETURN_IF_ERROR(CheckName(name));
  if (lifetime <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("a token lives for more than no time");
  }
  NewTokenRow out;
  out.token = NewToken();
  out.row.name = name;
  out.row.role = std::string(RoleName(role));
  out.row.sha256 = TokenHash(out.token);
  out.row.created_at = TimeText(now);
  out.row.expires_at = TimeText(now + lifetime);
  return out;
}

std::string TimeText(absl::Time time) {
  if (time == absl::InfiniteFuture()) return "";
  return absl::FormatTime(kTimeFormat, time, absl::UTCTimeZone());
}

absl::Time TimeOfText(const std::string& text, absl::Time when_empty) {
  if (text.empty()) return when_empty;
  absl::Time time;
  std::string error;
  // An unreadable date counts as passed: a damaged row must not admit anybody.
  if (!absl::ParseTime(kTimeFormat, text, &time, &error)) {
    return absl::InfinitePast();
  }
  return time;
}

}  // namespace tilefarm::security
