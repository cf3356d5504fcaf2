#include "server/jobs/device_administration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/jobs/remeasure.h"

namespace tilefarm::jobs {
namespace {

constexpr char kTime[] = "%Y-%m-%dT%H:%M:%SZ";
constexpr size_t kMostReasonBytes = 1024;
constexpr absl::Duration kLongestReservation = absl::Hours(24 * 7);
// Events kept while they cannot be stored, as on a full disk. Older ones are
// dropped with a line in the log.
constexpr size_t kMostEvents = 10'000;
// Re-measurements of one device that are in the farm at once. The conductor
// adds them, and must not be busy for long.
constexpr int kMostOutstanding = 8;
constexpr int kSamples = 5;

std::string TimeText(absl::Time time) {
  return absl::FormatTime(kTime, time, absl::UTCTimeZone());
}

absl::Time TimeFrom(const std::string& text) {
  absl::Time time = absl::InfinitePast();
  std::string error;
  absl::ParseTime(kTime, text, &time, &error);
  return time;
}

std::string NameOf(const std::string& device_id) {
  return device_id.substr(0, device_id.rfind('@'));
}

void Warn(const absl::Status& status, const std::string& what) {
  if (status.ok()) return;
  Log(LogLevel::kError, "devices", absl::StrCat(what, ": ", status.ToString()));
}

absl::Status CheckText(const std::string& what, const std::string& text) {
  if (text.size() <= kMostReasonBytes &&
      std::all_of(text.begin(), text.end(),
                  [](unsigned char c) { return c >= 0x20 && c != 0x7f; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": must be one line of at most ", kMostReasonBytes, " bytes"));
}

farm::Order OrderFrom(const std::string& text) {
  if (text == "drained") return farm::Order::kDrained;
  if (text == "quarantined") return farm::Order::kQuarantined;
  return farm::Order::kNone;
}

std::string By(const std::string& actor, const std::string& reason) {
  return absl::StrCat("by ", actor, reason.empty() ? "" : ": ", reason);
}

void Describe(const farm::DeviceStatus& device, database::DeviceRow& row) {
  row.name = device.name;
  row.model = device.model;
  row.target = device.target;
  row.last_seen = TimeText(device.last_seen);
}

std::string_view Verb(farm::Order order) {
  switch (order) {
    case farm::Order::kNone:
      return "resume";
    case farm::Order::kDrained:
      return "drain";
    case farm::Order::kQuarantined:
      return "quarantine";
  }
  return "resume";
}

}  // namespace

DeviceAdministration::DeviceAdministration(database::Store& store,
                                           farm::Farm& farm,
                                           std::string fingerprint,
                                           Clock& clock)
    : store_(store),
      farm_(farm),
      fingerprint_(std::move(fingerprint)),
      clock_(clock) {
  farm_.SetListener(this);
}

DeviceAdministration::~DeviceAdministration() {
  farm_.SetListener(nullptr);
  Flush();
}

absl::Status DeviceAdministration::Recover() {
  TF_ASSIGN_OR_RETURN(const std::vector<database::DeviceRow> rows,
                      tables().ListDevices());
  for (const database::DeviceRow& row : rows) {
    farm_.Know({.name = row.name,
                .order = OrderFrom(row.operator_state),
                .order_reason = By(row.actor, row.reason),
                .reserved_for = row.reserved_for,
                .reserved_until = TimeFrom(row.reserved_until),
                .model = row.model,
                .target = row.target,
                .last_seen = TimeFrom(row.last_seen)});
  }
  TF_ASSIGN_OR_RETURN(const std::vector<database::CanaryRow> canaries,
                      tables().ListCanaries());
  MutexLock lock(mutex_);
  for (const database::CanaryRow& row : canaries) {
    canaries_[row.device] = row;
    // Another compiler makes other code with another time.
    if (row.fingerprint == fingerprint_) {
      farm_.KnowCanary(row.device, row.seconds);
    }
  }
  return absl::OkStatus();
}

database::AuditEntry DeviceAdministration::Entry(
    const std::string& actor, const std::string& action,
    const std::string& name, const std::string& detail) const {
  return {.at = TimeText(clock_.Now()),
          .actor = actor,
          .action = action,
          .subject = name,
          .detail = detail};
}

absl::StatusOr<database::DeviceRow> DeviceAdministration::RowOf(
    const std::string& name) {
  for (const farm::DeviceStatus& device : farm_.Devices()) {
    if (device.name != name) continue;
    TF_ASSIGN_OR_RETURN(std::vector<database::DeviceRow> rows,
                        tables().ListDevices());
    database::DeviceRow row{.name = name};
    for (database::DeviceRow& one : rows) {
      if (one.name == name) row = std::move(one);
    }
    Describe(device, row);
    return row;
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no device '", name, "'; `tune devices` lists those there are"));
}

absl::Status DeviceAdministration::SetOrder(const std::string& name,
                                            farm::Order order,
                                            const std::string& actor,
                                            const std::string& reason) {
  TF_RETURN_IF_ERROR(CheckText("reason", reason));
  MutexLock lock(order_mutex_);
  TF_ASSIGN_OR_RETURN(database::DeviceRow row, RowOf(name));
  row.operator_state = std::string(farm::OrderName(order));
  const bool none = order == farm::Order::kNone;
  row.actor = none ? "" : actor;
  row.reason = none ? "" : reason;
  const database::AuditEntry entry =
      Entry(actor, std::string(Verb(order)), name, reason);
  TF_RETURN_IF_ERROR(tables().PutDevices({&row, 1}, {&entry, 1}));
  return farm_.SetOrder(name, order, By(actor, reason));
}

absl::Status DeviceAdministration::Reserve(const std::string& name,
                                           const std::string& user,
                                           absl::Duration time,
                                           const std::string& actor) {
  TF_RETURN_IF_ERROR(CheckText("user", user));
  if (user.empty()) {
    return absl::InvalidArgumentError("user: nobody to reserve it for");
  }
  if (time <= absl::ZeroDuration() || time > kLongestReservation) {
    return absl::InvalidArgumentError(
        "time: a reservation lasts more than nothing and at most 168h");
  }
  MutexLock lock(order_mutex_);
  TF_ASSIGN_OR_RETURN(database::DeviceRow row, RowOf(name));
  const absl::Time until = clock_.Now() + time;
  row.reserved_for = user;
  row.reserved_until = TimeText(until);
  const database::AuditEntry entry =
      Entry(actor, "reserve", name,
            absl::StrCat("for ", user, " until ", row.reserved_until));
  TF_RETURN_IF_ERROR(tables().PutDevices({&row, 1}, {&entry, 1}));
  return farm_.Reserve(name, user, until);
}

absl::Status DeviceAdministration::Release(const std::string& name,
                                           const std::string& actor) {
  MutexLock lock(order_mutex_);
  TF_ASSIGN_OR_RETURN(database::DeviceRow row, RowOf(name));
  const database::AuditEntry entry =
      Entry(actor, "release", name,
            row.reserved_for.empty() ? "it was not reserved" : "");
  row.reserved_for.clear();
  row.reserved_until.clear();
  TF_RETURN_IF_ERROR(tables().PutDevices({&row, 1}, {&entry, 1}));
  return farm_.Reserve(name, "", absl::InfinitePast());
}

absl::Status DeviceAdministration::Forget(const std::string& name,
                                          const std::string& actor) {
  MutexLock lock(order_mutex_);
  TF_RETURN_IF_ERROR(RowOf(name).status());
  // Its last events are stored first; later they would restore the row.
  TF_RETURN_IF_ERROR(FlushEvents());
  TF_RETURN_IF_ERROR(farm_.Forget(name));
  {
    MutexLock inner(mutex_);
    StopRemeasuring(name);
    std::erase_if(canaries_, [&](const auto& entry) {
      return NameOf(entry.first) == name;
    });
    std::erase_if(changed_canaries_,
                  [&](const std::string& id) { return NameOf(id) == name; });
  }
  const database::AuditEntry entry = Entry(actor, "forget", name, "");
  return tables().ForgetDevice(name, {&entry, 1});
}

absl::StatusOr<std::vector<database::AuditEntry>> DeviceAdministration::Log(
    const std::string& name, int64_t limit) {
  TF_RETURN_IF_ERROR(FlushEvents());
  TF_ASSIGN_OR_RETURN(std::vector<database::AuditEntry> entries,
                      tables().ReadAudit(name, limit));
  if (entries.empty() && !name.empty()) {
    TF_RETURN_IF_ERROR(RowOf(name).status());
  }
  return entries;
}

// --- What the farm finds out -------------------------------------------------

void DeviceAdministration::OnDeviceEvent(const farm::DeviceEvent& event) {
  MutexLock lock(events_mutex_);
  events_.push_back(event);
  if (events_.size() > kMostEvents) {
    Warn(absl::ResourceExhaustedError(events_.front().action),
         "the audit log cannot be written; an event is lost");
    events_.pop_front();
  }
}

absl::Status DeviceAdministration::FlushEvents() {
  std::deque<farm::DeviceEvent> events;
  {
    MutexLock lock(events_mutex_);
    events.swap(events_);
  }
  if (events.empty()) return absl::OkStatus();
  std::vector<database::AuditEntry> entries;
  for (const farm::DeviceEvent& event : events) {
    entries.push_back({.at = TimeText(event.at),
                       .actor = "farm",
                       .action = event.action,
                       .subject = event.device,
                       .detail = event.detail});
  }
  const absl::Status stored = tables().PutDevices({}, entries);
  if (stored.ok()) return stored;
  MutexLock lock(events_mutex_);
  events_.insert(events_.begin(), events.begin(), events.end());
  return stored;
}

void DeviceAdministration::Flush() {
  std::set<std::string> seen;
  {
    MutexLock lock(events_mutex_);
    for (const farm::DeviceEvent& event : events_) {
      if (event.action == "connect" || event.action == "disconnect" ||
          event.action == "release") {
        seen.insert(event.device);
      }
    }
  }
  const absl::Status flushed = FlushEvents();
  if (!events_wait_) {
    Warn(flushed, "the audit log cannot be written; it is tried again");
  }
  events_wait_ = !flushed.ok();
  if (events_wait_) return;
  if (!seen.empty()) StoreSeen(seen);
  QueueSome();
  StoreCanaries();
}

// Stores the rows of devices that connected, disconnected or were released, in
// one transaction, because a thousand may connect at once.
void DeviceAdministration::StoreSeen(const std::set<std::string>& names) {
  MutexLock lock(order_mutex_);
  auto stored = tables().ListDevices();
  if (!stored.ok()) {
    Warn(stored.status(), "devices are not read");
    return;
  }
  std::map<std::string, database::DeviceRow> rows;
  for (database::DeviceRow& row : *stored) rows[row.name] = std::move(row);
  std::vector<database::DeviceRow> changed;
  for (const farm::DeviceStatus& device : farm_.Devices()) {
    if (!names.contains(device.name)) continue;
    database::DeviceRow row = rows[device.name];
    Describe(device, row);
    if (device.reserved_for.empty()) {
      row.reserved_for.clear();
      row.reserved_until.clear();
    }
    changed.push_back(std::move(row));
  }
  Warn(tables().PutDevices(changed, {}), "devices are not stored");
}

// --- Suspect measurements ----------------------------------------------------

void DeviceAdministration::OnCanary(const std::string& device_id,
                                    bool trusted) {
  const auto last = tables().LastRecordId();
  if (!last.ok()) {
    Warn(last.status(), "a canary is not noted");
    return;
  }
  MutexLock lock(mutex_);
  database::CanaryRow& row = canaries_[device_id];
  if (row.device.empty()) row.good_through = *last;
  row.device = device_id;
  row.fingerprint = fingerprint_;
  row.seconds = farm_.CanarySeconds(device_id);
  if (trusted) {
    row.good_through = *last;
    if (row.suspect_through > 0) {
      remeasuring_.try_emplace(NameOf(device_id),
                               Remeasuring{.device_id = device_id});
    }
  } else {
    if (row.suspect_through == 0) row.suspect_after = row.good_through;
    row.suspect_through = std::max(*last, int64_t{1});
    // New measurements on this device are suspect as well.
    StopRemeasuring(NameOf(device_id));
  }
  // StoreCanaries may store it later: an older row makes more records suspect,
  // never fewer.
  changed_canaries_.insert(device_id);
}

void DeviceAdministration::StoreCanaries() {
  std::vector<database::CanaryRow> rows;
  {
    MutexLock lock(mutex_);
    for (const std::string& id : changed_canaries_) {
      rows.push_back(canaries_.at(id));
    }
  }
  if (rows.empty()) return;
  const absl::Status stored = tables().PutCanaries(rows);
  Warn(stored, "canaries are not stored; it is tried again");
  if (!stored.ok()) return;
  MutexLock lock(mutex_);
  for (const database::CanaryRow& row : rows) {
    const auto now = canaries_.find(row.device);
    // A row that has changed meanwhile is stored the next time.
    if (now == canaries_.end() || now->second == row) {
      changed_canaries_.erase(row.device);
    }
  }
}

bool DeviceAdministration::LoadSuspects(Remeasuring& work) {
  const database::CanaryRow& row = canaries_[work.device_id];
  auto suspects = tables().RecordsOfDevice(row.device, row.suspect_after,
                                           row.suspect_through);
  if (!suspects.ok()) {
    Warn(suspects.status(), "suspect records are not read");
    return false;
  }
  // The times of other records never count.
  std::erase_if(*suspects, [](const database::Record& record) {
    return record.status != database::Status::kOk || !record.verified ||
           record.stopped_early;
  });
  OnDeviceEvent({.at = clock_.Now(),
                 .device = NameOf(row.device),
                 .action = "remeasure",
                 .detail = absl::StrCat(suspects->size(),
                                        " records since the good canary "
                                        "before")});
  work.loaded = true;
  // Taken from the back, the newest first, because running jobs use them.
  work.waiting = *std::move(suspects);
  return true;
}

void DeviceAdministration::StopRemeasuring(const std::string& name) {
  if (remeasuring_.erase(name) == 0) return;
  farm_.RemoveQueue(absl::StrCat("remeasure/", name));
}

void DeviceAdministration::QueueSome() {
  MutexLock lock(mutex_);
  std::vector<std::string> done;
  for (auto& [name, work] : remeasuring_) {
    if (!work.loaded && !LoadSuspects(work)) continue;
    while (!work.waiting.empty() && work.outstanding < kMostOutstanding) {
      const database::Record record = std::move(work.waiting.back());
      work.waiting.pop_back();
      auto item = ItemFromRecord(record);
      if (!item.ok()) {
        Warn(item.status(), "a suspect record cannot be measured again");
        continue;
      }
      item->queue = absl::StrCat("remeasure/", name);
      item->device = name;
      item->options.min_samples = kSamples;
      farm_.SetUrgent(item->queue);
      if (farm_.Add(*std::move(item)).ok()) ++work.outstanding;
    }
    if (work.waiting.empty() && work.outstanding == 0) done.push_back(name);
  }
  for (const std::string& name : done) {
    const std::string id = remeasuring_.at(name).device_id;
    StopRemeasuring(name);
    canaries_[id].suspect_after = canaries_[id].suspect_through = 0;
    changed_canaries_.insert(id);
  }
}

void DeviceAdministration::OnRemeasured(const farm::WorkItem& item) {
  MutexLock lock(mutex_);
  const auto found = remeasuring_.find(item.device);
  if (found != remeasuring_.end()) --found->second.outstanding;
}

}  // namespace tilefarm::jobs
