// The lists of `tune`: which entries of them are shown, and in which order.
#include "server/cli/listing.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/cli/record_list.h"

namespace tilefarm::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int> Page(const Paging& paging, std::vector<int> entries) {
  // By the last digit, so that equal ones show that they stay in order.
  KeepPage(paging, entries, [](int a, int b) { return a % 10 < b % 10; });
  return entries;
}

TEST(KeepPage, TakesAPartOfTheList) {
  const std::vector<int> list = {13, 21, 33, 12, 11};
  EXPECT_EQ(Page({}, list), list);
  EXPECT_THAT(Page({.limit = 2}, list), ElementsAre(13, 21));
  EXPECT_THAT(Page({.limit = 2, .offset = 1}, list), ElementsAre(21, 33));
  EXPECT_THAT(Page({.offset = 4}, list), ElementsAre(11));
  EXPECT_THAT(Page({.limit = 9, .offset = 3}, list), ElementsAre(12, 11));
  EXPECT_THAT(Page({.offset = 5}, list), IsEmpty());
  EXPECT_THAT(Page({.limit = 3, .offset = 99}, list), IsEmpty());
}

TEST(KeepPage, OfAListInOrderOfTimeTheLatest) {
  const std::vector<int> list = {1, 2, 3, 4, 5};
  EXPECT_THAT(Page({.limit = 2, .from_end = true}, list), ElementsAre(4, 5));
  EXPECT_THAT(Page({.limit = 2, .offset = 1, .from_end = true}, list),
              ElementsAre(3, 4));
  EXPECT_THAT(Page({.limit = 9, .offset = 4, .from_end = true}, list),
              ElementsAre(1));
  EXPECT_THAT(Page({.offset = 9, .from_end = true}, list), IsEmpty());
  // The latest first: its start is what is asked for.
  EXPECT_THAT(Page({.reverse = true, .limit = 2, .from_end = true}, list),
              ElementsAre(5, 4));
}

TEST(KeepPage, SortsBeforeItCuts) {
  const std::vector<int> list = {13, 21, 33, 12, 11};
  EXPECT_THAT(Page({.sort = "x"}, list), ElementsAre(21, 11, 12, 13, 33));
  EXPECT_THAT(Page({.sort = "x", .limit = 2, .from_end = true}, list),
              ElementsAre(21, 11));
  EXPECT_THAT(Page({.sort = "x", .reverse = true, .limit = 2}, list),
              ElementsAre(33, 13));
}

database::Record Made(const std::string& workload, const std::string& target,
                      double seconds, const std::string& at) {
  database::Record record;
  record.workload_hash = workload;
  record.target = target;
  record.device = "desk@123";
  record.program = "@T.prim_func\ndef conv(A: T.Buffer((1,), \"float32\")):\n";
  record.recorded_at = at;
  record.status =
      seconds > 0 ? database::Status::kOk : database::Status::kWrongResult;
  record.verified = seconds > 0;
  record.median_seconds = seconds;
  return record;
}

TEST(RecordFilter, TakesWhatMeetsAllParts) {
  const database::Record record =
      Made("abcd", "x86-64:znver4,cores=1", 1e-3, "2026-05-02T10:00:00Z");
  EXPECT_TRUE(RecordFilter().Takes(record));
  EXPECT_TRUE(RecordFilter().empty());
  EXPECT_TRUE(RecordFilter{.workload = "ab"}.Takes(record));
  EXPECT_FALSE(RecordFilter{.workload = "bc"}.Takes(record));
  EXPECT_TRUE(RecordFilter{.target = "znver4"}.Takes(record));
  EXPECT_FALSE(RecordFilter{.target = "znver5"}.Takes(record));
  EXPECT_TRUE(RecordFilter{.device = "desk"}.Takes(record));
  EXPECT_FALSE(RecordFilter{.device = "board"}.Takes(record));
  EXPECT_TRUE(RecordFilter{.status = "ok"}.Takes(record));
  EXPECT_FALSE(RecordFilter{.status = "run_error"}.Takes(record));
  EXPECT_TRUE(RecordFilter{.since = "2026-05-02"}.Takes(record));
  EXPECT_FALSE(RecordFilter{.since = "2026-05-03"}.Takes(record));
  EXPECT_FALSE(
      (RecordFilter{.workload = "ab", .target = "other"}.Takes(record)));
}

TEST(RecordFilter, SinceIsADateOrATimeInUtc) {
  EXPECT_EQ(CheckSince("2026-05-02"), "");
  EXPECT_EQ(CheckSince("2026-05-02T10:00:00Z"), "");
  for (const char* since : {"", "yesterday", "2026-13-01", "2026-05-02T10:00",
                            "2026-05-02T10:00:00+02:00"}) {
    EXPECT_THAT(CheckSince(since), HasSubstr("is neither a date")) << since;
  }
}

TEST(RecordGroups, AreTheTasksWithTheirBest) {
  RecordGroups groups;
  groups.Add(Made("b", "x86-64:znver4,cores=1", 2e-3, "2026-05-02T10:00:00Z"));
  groups.Add(Made("b", "x86-64:znver4,cores=1", 1e-3, "2026-05-01T10:00:00Z"));
  groups.Add(Made("b", "x86-64:znver4,cores=1", 0, "2026-05-03T10:00:00Z"));
  groups.Add(Made("a", "x86-64:znver4,cores=2", 0, "2026-04-01T10:00:00Z"));
  database::Record early = Made("b", "x86-64:znver4,cores=1", 1e-6, "");
  early.stopped_early = true;
  groups.Add(early);
  const std::vector<RecordGroup> list = groups.Take({});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].workload, "a");
  EXPECT_EQ(list[0].ok, 0);
  EXPECT_EQ(list[0].best_seconds, 0);
  EXPECT_EQ(list[1].records, 4);
  EXPECT_EQ(list[1].ok, 3);
  EXPECT_EQ(list[1].best_seconds, 1e-3);
  EXPECT_EQ(list[1].latest, "2026-05-03T10:00:00Z");
  EXPECT_EQ(list[1].function, "conv");
  // The fastest first, those without a time last.
  EXPECT_EQ(groups.Take({.sort = "best"})[0].workload, "b");
  EXPECT_EQ(groups.Take({.sort = "records", .reverse = true})[0].workload, "b");
  EXPECT_EQ(groups.Take({.limit = 1, .offset = 1})[0].workload, "b");
  EXPECT_THAT(GroupsTable(list), HasSubstr("1.000 ms"));
  EXPECT_THAT(GroupsTable(list), HasSubstr("2026-05-03"));
  const auto json = GroupsJson(list);
  EXPECT_TRUE(json[0]["best_seconds"].is_null());
  EXPECT_EQ(json[1]["best_seconds"], 1e-3);
}

}  // namespace
}  // namespace tilefarm::cli
