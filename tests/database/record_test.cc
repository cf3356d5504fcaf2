#include "database/record.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Without(std::string json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\":");
  // Keep a key there, so that the object stays well-formed.
  return json.replace(at + 1, key.size(), "zzz");
}

TEST(StatusNames, RoundTrip) {
  for (int i = 0; i < 8; ++i) {
    const Status status = static_cast<Status>(i);
    EXPECT_EQ(ParseStatus(StatusName(status)), status);
  }
  EXPECT_EQ(StatusName(Status::kOk), "ok");
  EXPECT_EQ(StatusName(Status::kDeviceLost), "device_lost");
  EXPECT_EQ(ParseStatus("fine"), std::nullopt);
}

TEST(RecordJson, IsOneLineThatStartsWithTheDocumentedKeys) {
  const std::string json = RecordToJson(MakeRecord("c1"));
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_THAT(json, StartsWith("{\"workload\":"));
  size_t last = 0;
  for (const char* key :
       {"\"workload\":", "\"program\":", "\"target\":", "\"trace\":",
        "\"device\":", "\"status\":", "\"seconds\":"}) {
    const size_t at = json.find(key);
    ASSERT_NE(at, std::string::npos) << key;
    EXPECT_GE(at, last) << key;
    last = at;
  }
}

TEST(RecordJson, RoundTripsEveryField) {
  Record r = MakeRecord("c1");
  r.stopped_early = true;
  r.emulated = true;
  r.verified = false;
  r.protocol = {true, 8, "packed"};
  r.error = "line one\nline \"two\"\t\x01";
  r.status = Status::kWrongResult;
  r.max_abs_error = std::numeric_limits<double>::infinity();
  r.max_rel_error = std::numeric_limits<double>::quiet_NaN();
  r.seconds.push_back(1.0 / 3);
  const auto back = RecordFromJson(RecordToJson(r));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(RecordToJson(*back), RecordToJson(r));
  EXPECT_EQ(back->error, r.error);
  EXPECT_EQ(back->seconds, r.seconds);
  EXPECT_EQ(back->protocol, r.protocol);
  EXPECT_EQ(back->status, Status::kWrongResult);
  EXPECT_TRUE(std::isinf(back->max_abs_error));
  EXPECT_TRUE(std::isnan(back->max_rel_error));
  EXPECT_EQ(back->sequence, 7);
  EXPECT_EQ(back->id, 0);
}

TEST(RecordJson, CarriesReMeasurements) {
  Record r = MakeRecord("c1");
  Record& again = r.remeasured.emplace_back(MakeRecord("", 0.5));
  again.status = Status::kWrongResult;
  again.protocol = {true, 2, "packed"};
  const std::string json = RecordToJson(r);
  const auto back = RecordFromJson(json);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->remeasured.size(), 1u);
  EXPECT_EQ(back->remeasured[0].status, Status::kWrongResult);
  EXPECT_EQ(back->remeasured[0].protocol, again.protocol);
  EXPECT_EQ(RecordToJson(*back), json);

  std::string bad = json;
  const size_t at = bad.find("\"median_seconds\"", bad.find("remeasured"));
  bad.replace(at + 1, 6, "middle");
  EXPECT_THAT(RecordFromJson(bad).status().message(),
              HasSubstr("key \"remeasured[0].median_seconds\" is missing"));
}

TEST(RecordJson, ReplacesBytesThatAreNotUtf8) {
  Record r = MakeRecord("c1");
  r.error = "bad \xff byte";
  const auto back = RecordFromJson(RecordToJson(r));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->error, "bad \xEF\xBF\xBD byte");
}

TEST(RecordJson, IgnoresUnknownKeys) {
  std::string json = RecordToJson(MakeRecord("c1"));
  json.insert(1, "\"future\":{\"a\":[1,2]},");
  EXPECT_TRUE(RecordFromJson(json).ok());
}

TEST(RecordJson, NamesTheMissingKey) {
  const std::string json = RecordToJson(MakeRecord("c1"));
  for (const char* key : {"workload", "program", "target", "trace", "device",
                          "status", "seconds", "median_seconds", "verified",
                          "protocol", "fingerprint", "candidate_id"}) {
    const auto result = RecordFromJson(Without(json, key));
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(result.status().message()),
                HasSubstr(std::string("\"") + key + "\" is missing"));
  }
}

TEST(RecordJson, RefusesWrongTypes) {
  const std::string json = RecordToJson(MakeRecord("c1"));
  const std::pair<const char*, const char*> cases[] = {
      {"\"status\":\"ok\"", "\"status\":\"great\""},
      {"\"status\":\"ok\"", "\"status\":1"},
      {"\"verified\":true", "\"verified\":\"yes\""},
      {"\"sequence\":7", "\"sequence\":7.5"},
      {"\"sequence\":7", "\"sequence\":18446744073709551615"},
      {"\"cores\":1", "\"cores\":99999999999"},
      {"\"median_seconds\":0.001", "\"median_seconds\":\"fast\""},
      {"\"seconds\":[", "\"seconds\":[\"x\","},
  };
  for (const auto& [from, to] : cases) {
    std::string broken = json;
    const size_t at = broken.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    broken.replace(at, std::string(from).size(), to);
    EXPECT_EQ(RecordFromJson(broken).status().code(),
              absl::StatusCode::kInvalidArgument)
        << to;
  }
}

TEST(RecordJson, RefusesWhatIsNotAnObject) {
  for (const char* text :
       {"", "{", "[]", "null", "\"x\"", "{\"a\":1}}", "\xff\xfe"}) {
    EXPECT_EQ(RecordFromJson(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(RecordJson, SurvivesDeepNesting) {
  const std::string deep(200000, '[');
  EXPECT_FALSE(RecordFromJson(deep).ok());
  EXPECT_FALSE(RecordFromJson(deep + std::string(200000, ']')).ok());
}

TEST(RecordTest, NamesTheKernelsOfLibraries) {
  EXPECT_EQ(LibraryOf(kTrace), "");
  EXPECT_EQ(LibraryOf("sch.call_library(b0, kernel=\"openblas.sgemm\")\n"
                      "sch.call_library(b1, kernel=\"onednn.sgemm\")\n"
                      "sch.call_library(b2, kernel=\"openblas.sgemm\")"),
            "openblas.sgemm,onednn.sgemm");
  EXPECT_EQ(LibraryOf("sch.call_library(b0)\nsch.set(\"x\")"), "");
  Record record = MakeRecord("c");
  EXPECT_EQ(RecordToJson(record).find("\"library\""), std::string::npos);
  record.trace = "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
  EXPECT_NE(RecordToJson(record).find("\"library\":\"openblas.sgemm\""),
            std::string::npos);
  // It is derived from the trace, whatever a file contains.
  EXPECT_EQ(RecordFromJson(RecordToJson(record))->library(), "openblas.sgemm");
}

}  // namespace
}  // namespace tilefarm::database
