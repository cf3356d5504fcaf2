#include "server/farm/lease_id.h"

#include <openssl/crypto.h>

#include "absl/strings/str_cat.h"
#include "base/hmac.h"
#include "server/farm/random_id.h"

namespace tilefarm::farm {
namespace {

constexpr size_t kDigits = 16;  // of each half

std::string Proof(std::string_view key, std::string_view random,
                  const LeaseTerms& terms) {
  return HmacSha256Hex(key, absl::StrCat(std::string(random), "\n",
                                         std::string(terms.candidate_id), "\n",
                                         terms.attempt, "\n",
                                         std::string(terms.device_id)))
      .substr(0, kDigits);
}

}  // namespace

std::string MakeLeaseId(std::string_view key, const LeaseTerms& terms) {
  const std::string random = RandomId(4 * kDigits);
  return random + Proof(key, random, terms);
}

bool ProvesLease(std::string_view key, std::string_view lease_id,
                 const LeaseTerms& terms) {
  if (key.empty() || lease_id.size() != 2 * kDigits) return false;
  const std::string proof = Proof(key, lease_id.substr(0, kDigits), terms);
  return CRYPTO_memcmp(proof.data(), lease_id.data() + kDigits, kDigits) == 0;
}

}  // namespace tilefarm::farm
