// What the database keeps about devices beside their records: what operators
// decided, what the canary knows, and the audit log.
#ifndef TILEFARM_DATABASE_DEVICE_TABLES_H_
#define TILEFARM_DATABASE_DEVICE_TABLES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "database/record.h"

namespace tilefarm::database {

// One device, by the name it connects under. Times are RFC 3339 in UTC.
struct DeviceRow {
  std::string name;
  // What operators want: "" (nothing), "drained" or "quarantined".
  std::string operator_state;
  std::string reason;  // in the operator's words
  std::string actor;   // who
  std::string reserved_for;
  std::string reserved_until;
  // As last seen, so that it can be listed while it is away.
  std::string model;
  std::string target;
  std::string last_seen;

  bool operator==(const DeviceRow&) const = default;
};

// What is known of a device by its canaries. The key is the device id
// ("NAME@DIGEST"): changed hardware starts anew.
struct CanaryRow {
  std::string device;
  std::string fingerprint;  // of the compiler that made the canary's code
  double seconds = 0;       // its best median so far
  // The last record that was there at the last good canary.
  int64_t good_through = 0;
  // Records of the device in (suspect_after, suspect_through] are to be
  // measured again; none where suspect_through is 0.
  int64_t suspect_after = 0;
  int64_t suspect_through = 0;

  bool operator==(const CanaryRow&) const = default;
};

// Who did what to what, and why.
struct AuditEntry {
  int64_t id = 0;  // in order; given by the store
  std::string at;
  std::string actor;    // a user, or "farm"
  std::string action;   // "drain", "pause", "connect", "token create", ...
  std::string subject;  // the device's name, or a token's
  std::string detail;

  bool operator==(const AuditEntry&) const = default;
};

// Thread-safe; part of a Store, whose errors it has.
class DeviceTables {
 public:
  virtual ~DeviceTables() = default;

  // Writes the rows and the entries in one transaction.
  virtual absl::Status PutDevices(std::span<const DeviceRow> rows,
                                  std::span<const AuditEntry> audit) = 0;
  // Removes the row, if there is one, and what its canaries told.
  virtual absl::Status ForgetDevice(const std::string& name,
                                    std::span<const AuditEntry> audit) = 0;
  // By name.
  virtual absl::StatusOr<std::vector<DeviceRow>> ListDevices() const = 0;

  // In one transaction.
  virtual absl::Status PutCanaries(std::span<const CanaryRow> rows) = 0;
  virtual absl::StatusOr<std::vector<CanaryRow>> ListCanaries() const = 0;

  // The latest `limit` of the device, oldest first; an empty name: of all.
  virtual absl::StatusOr<std::vector<AuditEntry>> ReadAudit(
      const std::string& subject, int64_t limit) const = 0;
  // The same of tokens (see Store::AddToken), by the name they stand for.
  virtual absl::StatusOr<std::vector<AuditEntry>> ReadTokenAudit(
      const std::string& name, int64_t limit) const = 0;

  // The id of the newest record; 0 where there is none.
  virtual absl::StatusOr<int64_t> LastRecordId() const = 0;
  // Records of the device id with ids in (after, through], in order.
  virtual absl::StatusOr<std::vector<Record>> RecordsOfDevice(
      const std::string& device, int64_t after, int64_t through) const = 0;
};

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_DEVICE_TABLES_H_
