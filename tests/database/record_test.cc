#include "database/record.h"

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "database/record_line.h"
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

// A line that the fast reader leaves to the general one: its keys are the same,
// and an unknown one.
Record ReadGenerally(const std::string& line) {
  EXPECT_EQ(ReadUsualLine("{\"zzz\":1," + line.substr(1)), std::nullopt);
  const auto record = RecordFromJson("{\"zzz\":1," + line.substr(1));
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *record : Record();
}

TEST(ReadUsualLine, ReadsAsTheGeneralReaderDoes) {
  Record r = MakeRecord("c1");
  r.error = "a \"quoted\" \\ text\nand\tmore /";
  r.max_abs_error = std::numeric_limits<double>::infinity();
  r.max_rel_error = std::numeric_limits<double>::quiet_NaN();
  r.ci_low_seconds = -std::numeric_limits<double>::infinity();
  r.seconds = {1.0 / 3, 5e-324, 1.7976931348623157e308, 0,
               12345678901234567890.0};
  r.protocol = {true, 8, "packed"};
  r.trace += "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
  for (const Status status : {Status::kOk, Status::kDeviceLost}) {
    r.status = status;
    const std::string line = RecordToJson(r);
    const auto fast = ReadUsualLine(line);
    ASSERT_TRUE(fast) << line;
    EXPECT_EQ(RecordToJson(*fast), line);
    EXPECT_EQ(RecordToJson(ReadGenerally(line)), line);
    EXPECT_EQ(fast->seconds, r.seconds);
  }
  r.seconds.clear();
  const std::string line = RecordToJson(r);
  ASSERT_TRUE(ReadUsualLine(line));
  EXPECT_TRUE(ReadUsualLine(line)->seconds.empty());
  // In another order, and with white space.
  const size_t comma = line.find(",\"program\"");
  const std::string turned = "{ " +
                             line.substr(comma + 1, line.size() - comma - 2) +
                             " ,\t" + line.substr(1, comma - 1) + " } ";
  ASSERT_TRUE(ReadUsualLine(turned)) << turned;
  EXPECT_EQ(RecordToJson(*ReadUsualLine(turned)), line);
}

TEST(ReadUsualLine, LeavesOddLinesToTheGeneralReader) {
  const std::string line = RecordToJson(MakeRecord("c1"));
  ASSERT_TRUE(ReadUsualLine(line));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = line;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return changed.replace(at, from.size(), to);
  };
  for (const std::string& odd :
       {std::string(),
        std::string("{}"),
        std::string("[]"),
        line.substr(0, line.size() - 1),
        line + "x",
        with("\"verified\":true", "\"verified\":1"),
        with("\"verified\":true", "\"verified\":true,\"verified\":false"),
        with("\"cores\":1", "\"cores\":1.5"),
        with("\"cores\":1", "\"cores\":99999999999"),
        with("\"cores\":1,", ""),
        with("\"status\":\"ok\"", "\"status\":\"no\""),
        with("\"sequence\":7", "\"sequence\":07"),
        with("\"sequence\":7", "\"sequence\":-0.5"),
        with("\"compile_seconds\":0.04", "\"compile_seconds\":.04"),
        with("\"compile_seconds\":0.04", "\"compile_seconds\":4."),
        with("\"compile_seconds\":0.04", "\"compile_seconds\":4e"),
        with("\"compile_seconds\":0.04", "\"compile_seconds\":1e999"),
        with("\"compile_seconds\":0.04", "\"compile_seconds\":-0"),
        with("\"compile_seconds\":0.04", "\"compile_seconds\":infinity"),
        with("box#0123", "b\\u00f6x"),
        with("box#0123", "b\xc3\xb6x"),
        with("box#0123", "b\xff"),
        with("box#0123", "b\x01"),
        with("\"workload\":", "\"workload \":")}) {
    EXPECT_EQ(ReadUsualLine(odd), std::nullopt) << odd;
  }
}

// Whatever bytes are changed, the fast reader takes no line that the general
// one refuses, and reads none differently.
TEST(ReadUsualLine, ChangedBytesAreReadEqually) {
  std::mt19937_64 draw(1);
  const std::string line = RecordToJson(MakeRecord("c1"));
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string changed = line;
    const char characters[] = "\"\\{}[]:,.0123456789eE+-ntu \x7f\xc3/";
    for (uint64_t n = 1 + draw() % 2; n > 0; --n) {
      const size_t at = draw() % changed.size();
      const char c = characters[draw() % (sizeof characters - 1)];
      switch (draw() % 3) {
        case 0:
          changed[at] = c;
          break;
        case 1:
          changed.insert(at, 1, c);
          break;
        default:
          changed.erase(at, 1);
      }
    }
    const auto fast = ReadUsualLine(changed);
    if (!fast) continue;
    ++taken;
    // The added key sends it to the general reader.
    const auto general =
        RecordFromJson("{\"zzz\":1," + changed.substr(changed.find('{') + 1));
    ASSERT_TRUE(general.ok()) << general.status() << "\n" << changed;
    ASSERT_EQ(RecordToJson(*fast), RecordToJson(*general)) << changed;
  }
  EXPECT_GT(taken, 1000);
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
