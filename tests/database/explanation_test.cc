// What lookups say about the records that they considered, in one database and
// in several.
#include "database/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "database/layers.h"
#include "tests/database/lookup_fixture.h"

namespace tilefarm::database {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ExplanationTest = LookupTest;

std::map<std::string, int64_t> Fates(const Explanation& explanation) {
  std::map<std::string, int64_t> fates;
  for (const ExplainedGroup& group : explanation.groups) {
    fates[std::string(FateName(group.fate))] += group.records;
  }
  return fates;
}

TEST_F(ExplanationTest, EveryRecordHasItsFate) {
  std::vector<Record> records = {Good("best", 1e-3), Good("slow", 2e-3),
                                 Good("slower", 3e-3)};
  const auto add = [&](const std::string& id) -> Record& {
    return records.emplace_back(Good(id, 1e-4));
  };
  add("failed").status = Status::kRunError;
  add("unverified").verified = false;
  add("early").stopped_early = true;
  add("ruled out").remeasured.push_back(MakeRecord("", 1e-4));
  records.back().remeasured[0].status = Status::kWrongResult;
  add("target").target = target::Parse("x86-64:znver5,cores=1")->Key();
  add("stale").fingerprint = "llvm-18+tf1";
  add("library").trace =
      "b0 = sch.get_block(name=\"B\", func_name=\"main\")\n"
      "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
  add("emulated").emulated = true;
  add("cores").target = target::Parse("x86-64:znver4,cores=8")->Key();
  add("cold").protocol.cold_cache = true;
  add("other model").device_model = "another";
  add("family").target = target::Parse("x86-64:x86-64-v3,cores=1")->Key();
  const auto store = Reader(File("a.db", records));
  const auto why = store->ExplainBest(query_);
  ASSERT_TRUE(why.ok()) << why.status();
  EXPECT_TRUE(why->found);
  EXPECT_EQ(why->chosen, "best");
  EXPECT_EQ(why->reason, store->FindBest(query_)->reason);
  EXPECT_EQ(why->median_seconds, 1e-3);
  EXPECT_EQ(why->records(), static_cast<int64_t>(records.size()));
  EXPECT_EQ(Fates(*why), (std::map<std::string, int64_t>{{"chosen", 1},
                                                         {"slower", 2},
                                                         {"failed", 1},
                                                         {"unverified", 1},
                                                         {"stopped_early", 1},
                                                         {"ruled_out", 1},
                                                         {"other_target", 1},
                                                         {"stale", 1},
                                                         {"library", 1},
                                                         {"emulated", 1},
                                                         {"other_cores", 1},
                                                         {"other_protocol", 1},
                                                         {"farther_step", 2}}));
  EXPECT_EQ(why->groups[0].fate, Fate::kChosen);
  EXPECT_EQ(why->groups[1].fate, Fate::kSlower);
  EXPECT_EQ(why->groups[1].records, 2);
  EXPECT_EQ(why->groups[1].best_seconds, 2e-3);
}

TEST_F(ExplanationTest, PermissionsAreNamedWhereTheyDecide) {
  std::vector<Record> records = {Good("old", 1e-3), Good("rounds", 1e-3)};
  records[0].fingerprint = "llvm-18+tf1";
  records[1].trace += "sch.unroll(loop=l4)\n";
  query_.keeps_floats = [&](const std::string&, const std::string& trace) {
    return trace != records[1].trace;
  };
  const auto store = Reader(File("a.db", records));
  const auto why = store->ExplainBest(query_);
  ASSERT_TRUE(why.ok()) << why.status();
  EXPECT_FALSE(why->found);
  EXPECT_EQ(why->reason,
            std::string(store->FindBest(query_).status().message()));
  const std::string text = ExplanationText(*why);
  EXPECT_THAT(text, HasSubstr("2 records considered"));
  EXPECT_THAT(text, HasSubstr("none: no usable record"));
  EXPECT_THAT(text, HasSubstr("stale: made by another compiler (--allow-stale "
                              "takes them); best 1.000 ms (llvm-18+tf1"));
  EXPECT_THAT(text, HasSubstr("(--strict-fp, --no-winograd)"));
}

TEST_F(ExplanationTest, ATensorizedRecordThatLacksFeatures) {
  Record r = Good("tensorized", 1e-3);
  r.trace += "sch.tensorize(block_or_loop=l5, tensor_intrin=\"amx\")\n";
  // No vector or matrix instruction: only tensor intrinsics ask for it.
  query_.target.features = {"-clwb"};
  const auto why = Reader(File("a.db", {r}))->ExplainBest(query_);
  ASSERT_TRUE(why.ok()) << why.status();
  EXPECT_EQ(Fates(*why),
            (std::map<std::string, int64_t>{{"missing_features", 1}}));
}

TEST_F(ExplanationTest, NoRecordsAtAll) {
  const auto why = Reader(File("a.db", {}))->ExplainBest(query_);
  ASSERT_TRUE(why.ok()) << why.status();
  EXPECT_FALSE(why->found);
  EXPECT_EQ(why->records(), 0);
  EXPECT_THAT(why->reason, HasSubstr("there is none"));
  query_.program = nullptr;
  EXPECT_EQ(Reader(folder_.File("a.db"))->ExplainBest(query_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ExplanationTest, JsonRoundTrips) {
  std::vector<Record> records = {Good("a", 1e-3), Good("b", 2e-3)};
  records[1].status = Status::kCompileError;
  records[1].median_seconds = 0;
  for (const bool found : {true, false}) {
    if (!found) query_.fingerprint = "llvm-20";
    const auto why = Reader(File("a.db", records))->ExplainBest(query_);
    ASSERT_TRUE(why.ok()) << why.status();
    ASSERT_EQ(why->found, found);
    const std::string json = ExplanationToJson(*why);
    const auto back = ExplanationFromJson(json);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(ExplanationToJson(*back), json);
    EXPECT_EQ(ExplanationText(*back), ExplanationText(*why));
    EXPECT_EQ(back->groups, why->groups);
  }
  for (const char* bad :
       {"", "[]", "{}", "{\"workload\":\"a\",\"found\":true,\"reason\":\"\"}",
        "{\"workload\":\"a\",\"found\":false,\"reason\":\"\","
        "\"records\":[{}]}"}) {
    EXPECT_EQ(ExplanationFromJson(bad).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

TEST(FateTest, NamesAreStable) {
  for (int i = 0; i <= static_cast<int>(Fate::kChosen); ++i) {
    const auto fate = static_cast<Fate>(i);
    EXPECT_EQ(ParseFate(FateName(fate)), fate);
    EXPECT_NE(FateText(fate), "");
  }
  EXPECT_EQ(FateName(Fate::kFailed), "failed");
  EXPECT_EQ(FateName(Fate::kSlower), "slower");
  EXPECT_EQ(FateName(Fate::kChosen), "chosen");
  EXPECT_EQ(ParseFate("fine"), std::nullopt);
}

// --- Several databases -----------------------------------------------------

class LayersTest : public LookupTest {
 protected:
  // "CANDIDATE of FILE", or the name of the error.
  std::string Best(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(folder_.File(name));
    const auto layers = Layers::Open(paths);
    EXPECT_TRUE(layers.ok()) << layers.status();
    const auto best = layers->FindBest(query_);
    if (!best.ok()) {
      return std::string(absl::StatusCodeToString(best.status().code()));
    }
    return best->record.candidate_id + " of " +
           (best->database.empty()
                ? "the one"
                : best->database.substr(folder_.path().size() + 1));
  }
};

TEST_F(LayersTest, TheEarlierDatabaseWinsWhereBothFitEquallyWell) {
  File("local.db", {Good("mine", 2e-3)});
  File("team.db", {Good("faster", 1e-3)});
  EXPECT_EQ(Best({"local.db", "team.db"}), "mine of local.db");
  EXPECT_EQ(Best({"team.db", "local.db"}), "faster of team.db");
  EXPECT_EQ(Best({"team.db"}), "faster of the one");
}

TEST_F(LayersTest, ABetterFitOfALaterDatabaseWins) {
  Record family = Good("family", 1e-4);
  family.target = target::Parse("x86-64:x86-64-v3,cores=1")->Key();
  Record cores = Good("cores", 1e-4);
  cores.target = target::Parse("x86-64:znver4,cores=8")->Key();
  Record elsewhere = Good("elsewhere", 1e-4);
  elsewhere.device_model = "another";
  File("family.db", {family});
  File("cores.db", {cores});
  File("elsewhere.db", {elsewhere});
  File("exact.db", {Good("exact", 1e-2)});
  EXPECT_EQ(Best({"family.db", "exact.db"}), "exact of exact.db");
  EXPECT_EQ(Best({"cores.db", "exact.db"}), "exact of exact.db");
  EXPECT_EQ(Best({"elsewhere.db", "exact.db"}), "exact of exact.db");
  EXPECT_EQ(Best({"family.db", "elsewhere.db"}), "elsewhere of elsewhere.db");
  EXPECT_EQ(Best({"family.db", "cores.db", "elsewhere.db", "exact.db"}),
            "exact of exact.db");
  Record stale = Good("stale", 1e-4);
  stale.fingerprint = "llvm-18";
  File("stale.db", {stale});
  query_.allow_stale = true;
  EXPECT_EQ(Best({"stale.db", "exact.db"}), "exact of exact.db");
}

TEST_F(LayersTest, ADatabaseWithoutAUsableRecordIsPassedOver) {
  Record bad = Good("bad", 1e-4);
  bad.verified = false;
  const std::string first = File("first.db", {bad});
  File("second.db", {Good("good", 1e-3)});
  EXPECT_EQ(Best({"first.db", "second.db"}), "good of second.db");
  const std::string third = File("third.db", {});
  EXPECT_EQ(Best({"first.db", "third.db"}), "NOT_FOUND");
  const auto none = Layers::Open({first, third})->FindBest(query_).status();
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("first.db: no usable record"));
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("third.db: no usable record"));
}

TEST_F(LayersTest, ADatabaseThatCannotBeReadIsAnError) {
  const std::string good = File("good.db", {Good("good", 1e-3)});
  const auto missing = Layers::Open({good, folder_.File("none.db")});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("none.db"));
  const auto twice = Layers::Open({good, good});
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(twice.status().message()), HasSubstr("given twice"));
  EXPECT_EQ(Layers::Open({}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LayersTest, TheExplanationNamesTheDatabases) {
  Record family = Good("family", 1e-4);
  family.target = target::Parse("x86-64:x86-64-v3,cores=1")->Key();
  const std::string a = File("a.db", {family});
  const std::string b = File("b.db", {Good("b", 2e-3), Good("b2", 3e-3)});
  const std::string c = File("c.db", {Good("c", 1e-3)});
  const auto layers = Layers::Open({a, b, c});
  ASSERT_TRUE(layers.ok()) << layers.status();
  const auto why = layers->ExplainBest(query_);
  ASSERT_TRUE(why.ok()) << why.status();
  EXPECT_EQ(why->chosen, "b");
  EXPECT_EQ(why->database, b);
  std::vector<std::string> groups;
  for (const ExplainedGroup& group : why->groups) {
    groups.push_back(group.database.substr(folder_.path().size() + 1) + " " +
                     std::string(FateName(group.fate)));
  }
  EXPECT_THAT(groups, ElementsAre("b.db chosen", "a.db farther_step",
                                  "b.db slower", "c.db earlier_database"));
  const auto back = ExplanationFromJson(ExplanationToJson(*why));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->groups, why->groups);
  EXPECT_THAT(ExplanationText(*why), HasSubstr(", from " + b));
}

}  // namespace
}  // namespace tilefarm::database
