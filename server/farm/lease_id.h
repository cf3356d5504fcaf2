// Lease ids that prove what was granted.
//
// A result may come from a lease of a former server process, which this process
// does not know. So that nobody can invent such a lease, an id carries a proof:
//
//   16 hexadecimal digits, random | 16 of HMAC(key, random, terms)
//
// The key is the database's, so every process on it can check the proof, and no
// grant needs a write of its own.
#ifndef TILEFARM_SERVER_FARM_LEASE_ID_H_
#define TILEFARM_SERVER_FARM_LEASE_ID_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tilefarm::farm {

// A lease permits this device to report this attempt at this candidate. A
// candidate's id stands for its program, target and fingerprint.
struct LeaseTerms {
  std::string_view candidate_id;
  uint32_t attempt = 0;
  std::string_view device_id;
};

// 32 hexadecimal digits.
std::string MakeLeaseId(std::string_view key, const LeaseTerms& terms);
// Whether MakeLeaseId made it with this key for these terms. False for an empty
// key.
bool ProvesLease(std::string_view key, std::string_view lease_id,
                 const LeaseTerms& terms);

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_LEASE_ID_H_
