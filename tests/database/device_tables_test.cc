#include "database/device_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "database/store.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DeviceTablesTest : public ::testing::Test {
 protected:
  DeviceTablesTest()
      : store_(*Store::Open(":memory:", Store::Mode::kReadWrite)),
        tables_(store_->device_tables()) {}

  static AuditEntry Entry(const std::string& subject,
                          const std::string& action) {
    return {.at = "2026-01-02T03:04:05Z",
            .actor = "ann",
            .action = action,
            .subject = subject,
            .detail = "why"};
  }

  std::unique_ptr<Store> store_;
  DeviceTables& tables_;
};

TEST_F(DeviceTablesTest, KeepsTheLatestRowOfADevice) {
  DeviceRow row{.name = "w",
                .operator_state = "drained",
                .reason = "fan",
                .actor = "ann",
                .reserved_for = "bob",
                .reserved_until = "2026-01-02T03:04:05Z",
                .model = "m",
                .target = "t",
                .last_seen = "2026-01-02T03:04:05Z"};
  ASSERT_TRUE(tables_.PutDevices({&row, 1}, {}).ok());
  EXPECT_THAT(*tables_.ListDevices(), ElementsAre(row));
  row.operator_state = "";
  const AuditEntry entry = Entry("w", "resume");
  ASSERT_TRUE(tables_.PutDevices({&row, 1}, {&entry, 1}).ok());
  EXPECT_THAT(*tables_.ListDevices(), ElementsAre(row));
  EXPECT_EQ(tables_.ReadAudit("w", 10)->size(), 1u);
}

TEST_F(DeviceTablesTest, ForgettingADeviceLeavesTheOthersAndTheLog) {
  for (const std::string name : {"w", "w@x", "v"}) {
    const DeviceRow row{.name = name};
    ASSERT_TRUE(tables_.PutDevices({&row, 1}, {}).ok());
    const CanaryRow canary{.device = name + "@0123456789ab"};
    ASSERT_TRUE(tables_.PutCanaries({&canary, 1}).ok());
  }
  const AuditEntry entry = Entry("w", "forget");
  ASSERT_TRUE(tables_.ForgetDevice("w", {&entry, 1}).ok());
  std::vector<std::string> names;
  const std::vector<DeviceRow> rows = *tables_.ListDevices();
  for (const DeviceRow& row : rows) names.push_back(row.name);
  EXPECT_THAT(names, ElementsAre("v", "w@x"));
  names.clear();
  const std::vector<CanaryRow> canaries = *tables_.ListCanaries();
  for (const CanaryRow& row : canaries) {
    names.push_back(row.device);
  }
  EXPECT_THAT(names, ElementsAre("v@0123456789ab", "w@x@0123456789ab"));
  EXPECT_EQ(tables_.ReadAudit("w", 10)->size(), 1u);
}

TEST_F(DeviceTablesTest, TheLogIsReadFromItsEnd) {
  std::vector<AuditEntry> entries;
  for (int i = 0; i < 5; ++i) {
    entries.push_back(Entry(i % 2 == 0 ? "even" : "odd", std::to_string(i)));
  }
  ASSERT_TRUE(tables_.PutDevices({}, entries).ok());
  const auto actions = [&](const std::string& subject, int64_t limit) {
    std::vector<std::string> all;
    const std::vector<AuditEntry> read = *tables_.ReadAudit(subject, limit);
    for (const AuditEntry& entry : read) {
      all.push_back(entry.action);
    }
    return all;
  };
  EXPECT_THAT(actions("", 2), ElementsAre("3", "4"));
  EXPECT_THAT(actions("even", 10), ElementsAre("0", "2", "4"));
  EXPECT_THAT(actions("nobody", 10), IsEmpty());
}

TEST_F(DeviceTablesTest, RecordsOfADeviceBetweenTwoMoments) {
  EXPECT_EQ(*tables_.LastRecordId(), 0);
  std::vector<Record> records;
  for (int i = 0; i < 6; ++i) {
    Record record = MakeRecord(std::to_string(i));
    record.device = i % 2 == 0 ? "even@0123456789ab" : "odd@0123456789ab";
    records.push_back(record);
  }
  ASSERT_TRUE(store_->AddRecords(records).ok());
  EXPECT_EQ(*tables_.LastRecordId(), 6);
  std::vector<int64_t> ids;
  const std::vector<Record> between =
      *tables_.RecordsOfDevice("odd@0123456789ab", 2, 5);
  for (const Record& record : between) {
    ids.push_back(record.id);
  }
  EXPECT_THAT(ids, ElementsAre(4));
}

TEST_F(DeviceTablesTest, KeepsWhatACanaryTold) {
  const CanaryRow row{.device = "w@0123456789ab",
                      .fingerprint = "f",
                      .seconds = 1e-4,
                      .good_through = 1,
                      .suspect_after = 2,
                      .suspect_through = 3};
  ASSERT_TRUE(tables_.PutCanaries({&row, 1}).ok());
  EXPECT_THAT(*tables_.ListCanaries(), ElementsAre(row));
}

}  // namespace
}  // namespace tilefarm::database
