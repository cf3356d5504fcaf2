// What the database stores about devices in addition to their records: orders
// of operators, results of canaries, and the audit log.
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
  std::string actor;   // who gave the order
  std::string reserved_for;
  std::string reserved_until;
  // As last seen, so that the device can be listed while it is offline.
  std::string model;
  std::string target;
  std::string last_seen;

  bool operator==(const DeviceRow&) const = default;
};

// What the canaries of a device have shown. The key is the device id
// ("NAME@DIGEST"), so changed hardware starts with an empty row.
struct CanaryRow {
  std::string device;
  std::string fingerprint;  // of the compiler that made the canary's code
  double seconds = 0;       // its best median so far
  // The last record before the last good canary.
  int64_t good_through = 0;
  // Records of the device in (suspect_after, suspect_through] are to be
  // measured again. suspect_through 0: none.
  int64_t suspect_after = 0;
  int64_t suspect_through = 0;

  bool operator==(const CanaryRow&) const = default;
};

// An entry of the audit log: actor, action, subject and reason.
struct AuditEntry {
  int64_t id = 0;  // in order; given by the store
  std::string at;
  std::string actor;    // a user, or "farm"
  std::string action;   // "drain", "pause", "connect", "token create", ...
  std::string subject;  // the device's name, or a token's
  std::string detail;

  bool operator==(const AuditEntry&) const = default;
};

// Thread-safe. Part of a Store, and fails as its methods do.
class DeviceTables {
 public:
  virtual ~DeviceTables() = default;

  // Writes the rows and the entries in one transaction.
  virtual absl::Status PutDevices(std::span<const DeviceRow> rows,
                                  std::span<const AuditEntry> audit) = 0;
  // Removes the device's row, if there is one, and the rows of its canaries.
  virtual absl::Status ForgetDevice(const std::string& name,
                                    std::span<const AuditEntry> audit) = 0;
  // By name.
  virtual absl::StatusOr<std::vector<DeviceRow>> ListDevices() const = 0;

  // In one transaction.
  virtual absl::Status PutCanaries(std::span<const CanaryRow> rows) = 0;
  virtual absl::StatusOr<std::vector<CanaryRow>> ListCanaries() const = 0;

  // The latest `limit` entries of the device, oldest first; an empty name: of
  // all devices.
  virtual absl::StatusOr<std::vector<AuditEntry>> ReadAudit(
      const std::string& subject, int64_t limit) const = 0;
  // The same for tokens (see Store::AddToken), by the name of the token.
  virtual absl::StatusOr<std::vector<AuditEntry>> ReadTokenAudit(
      const std::string& name, int64_t limit) const = 0;

  // The id of the newest record; 0: there is none.
  virtual absl::StatusOr<int64_t> LastRecordId() const = 0;
  // Records of the device id with ids in (after, through], in order.
  virtual absl::StatusOr<std::vector<Record>> RecordsOfDevice(
      const std::string& device, int64_t after, int64_t through) const = 0;
};

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_DEVICE_TABLES_H_
