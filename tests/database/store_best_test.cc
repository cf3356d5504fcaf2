#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

using ::testing::HasSubstr;

constexpr char kFingerprint[] = "llvm-19.1.7+tf1";
constexpr char kModel[] = "AMD EPYC 9R14; znver4";

ir::PrimFuncPtr Program(const char* text) {
  auto program = ir::ParseFunction(text);
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

target::Target TargetOf(const char* text) {
  auto parsed = target::Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *parsed;
}

constexpr char kLibraryTrace[] =
    "b0 = sch.get_block(name=\"B\", func_name=\"main\")\n"
    "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";

class StoreBestTest : public ::testing::Test {
 protected:
  StoreBestTest() {
    auto store = Store::Open(":memory:", Store::Mode::kReadWrite);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    hash_ = ir::WorkloadHash(*Program(kProgram));
    query_.program = Program(kProgram);
    query_.target = TargetOf("x86-64:znver4,cores=1");
    query_.device_model = kModel;
    query_.fingerprint = kFingerprint;
  }
  Record Good(const std::string& id, double median) {
    Record r = MakeRecord(id, median);
    r.workload_hash = hash_;
    r.target = query_.target.Key();
    return r;
  }
  void Add(const Record& record) {
    const auto added = store_->AddRecords(std::vector{record});
    ASSERT_TRUE(added.ok()) << added.status();
  }
  std::string Best() {
    const auto best = store_->FindBest(query_);
    return best.ok()
               ? best->record.candidate_id
               : std::string(absl::StatusCodeToString(best.status().code()));
  }
  int64_t IdOf(const std::string& candidate_id) {
    int64_t id = 0;
    EXPECT_TRUE(store_
                    ->ForEachRecord([&](const Record& r) {
                      if (r.candidate_id == candidate_id) id = r.id;
                      return id == 0;
                    })
                    .ok());
    return id;
  }

  std::unique_ptr<Store> store_;
  std::string hash_;
  BestQuery query_;
};

TEST_F(StoreBestTest, NothingIsNotFound) { EXPECT_EQ(Best(), "NOT_FOUND"); }

TEST_F(StoreBestTest, TheFastestWithItsReasonAndTrace) {
  Add(Good("slow", 2e-3));
  Add(Good("fast", 1e-3));
  const auto best = store_->FindBest(query_);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->record.candidate_id, "fast");
  EXPECT_EQ(best->record.trace, kTrace);
  EXPECT_EQ(best->record.program, kProgram);
  EXPECT_EQ(best->reason, "exact device model");
}

TEST_F(StoreBestTest, NamesDoNotCount) {
  Add(Good("fast", 1e-3));
  query_.program = Program(kSameProgram);
  EXPECT_EQ(Best(), "fast");
  query_.program = Program(kOtherProgram);
  EXPECT_EQ(Best(), "NOT_FOUND");
}

TEST_F(StoreBestTest, AHashCollisionIsAMiss) {
  // A record with this workload's hash that contains another program.
  Record forged = Good("forged", 1e-6);
  forged.program = kOtherProgram;
  Add(forged);
  EXPECT_EQ(Best(), "NOT_FOUND");
  // With the true record present, it is a variant of the same workload.
  Add(Good("true", 1e-3));
  EXPECT_NE(Best(), "NOT_FOUND");
}

TEST_F(StoreBestTest, OnlySoundRecords) {
  Record r = Good("failed", 1e-6);
  r.status = Status::kWrongResult;
  Add(r);
  r = Good("unverified", 1e-6);
  r.verified = false;
  Add(r);
  r = Good("early", 1e-6);
  r.stopped_early = true;
  Add(r);
  r = Good("zero", 0);
  Add(r);
  const auto none = store_->FindBest(query_);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("4 failed"));
  Add(Good("sound", 1e-3));
  EXPECT_EQ(Best(), "sound");
}

TEST_F(StoreBestTest, OneThatWasStoppedEarlyCountsOnceItWasMeasuredInFull) {
  Record early = Good("early", 1e-3);
  early.stopped_early = true;
  Add(early);
  Add(Good("slow", 4e-3));
  EXPECT_EQ(Best(), "slow");
  // A second measurement that was stopped adds no information.
  ASSERT_TRUE(store_->AddMeasurement(IdOf("early"), early).ok());
  EXPECT_EQ(Best(), "slow");
  ASSERT_TRUE(store_->AddMeasurement(IdOf("early"), Good("early", 2e-3)).ok());
  EXPECT_EQ(Best(), "early");
  const auto best = store_->FindBest(query_);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->record.median_seconds, 2e-3);
  EXPECT_FALSE(best->record.stopped_early);
}

TEST_F(StoreBestTest, EmulatedOnesOnlyWhereAllowedAndNoRealOneFits) {
  Record r = Good("emulated-slow", 1e-5);
  r.emulated = true;
  Add(r);
  r = Good("emulated", 1e-6);
  r.emulated = true;
  Add(r);
  const auto none = store_->FindBest(query_);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("2 timed by an emulator (--allow-emulated"));
  query_.allow_emulated = true;
  const auto best = store_->FindBest(query_);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->record.candidate_id, "emulated");
  EXPECT_THAT(best->reason, HasSubstr("timed by an emulator"));
  // Only of the same family, and slower: still the best match.
  r = Good("real", 1e-3);
  r.target = TargetOf("x86-64:haswell,cores=1").Key();
  Add(r);
  EXPECT_EQ(Best(), "real");
}

TEST_F(StoreBestTest, StaleOnesOnlyWhereAllowed) {
  Record r = Good("stale", 1e-6);
  r.fingerprint = "llvm-18+tf0";
  Add(r);
  const auto none = store_->FindBest(query_);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("another compiler fingerprint"));
  query_.allow_stale = true;
  const auto best = store_->FindBest(query_);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->record.candidate_id, "stale");
  EXPECT_THAT(best->reason, HasSubstr("stale"));
  Add(Good("fresh", 1e-3));
  EXPECT_EQ(Best(), "fresh");
}

TEST_F(StoreBestTest, FallsBackByTarget) {
  Record r = Good("unfit", 1e-6);
  r.target = TargetOf("aarch64:cortex-a72,cores=1").Key();
  Add(r);
  EXPECT_EQ(Best(), "NOT_FOUND");
  r = Good("family", 1e-5);
  r.target = TargetOf("x86-64:haswell,cores=1").Key();
  r.device_model = "Intel";
  Add(r);
  EXPECT_EQ(Best(), "family");
  r = Good("other-model", 1e-3);
  r.device_model = "AMD Ryzen 9; znver4";
  Add(r);
  EXPECT_EQ(Best(), "other-model");
  EXPECT_EQ(store_->FindBest(query_)->reason,
            "same microarchitecture (znver4)");
  r = Good("other-cores", 1e-4);
  r.target = TargetOf("x86-64:znver4,cores=8").Key();
  Add(r);
  EXPECT_EQ(Best(), "other-cores");
  EXPECT_THAT(store_->FindBest(query_)->reason, HasSubstr("8 cores"));
  Add(Good("exact", 1e-2));
  EXPECT_EQ(Best(), "exact");
}

TEST_F(StoreBestTest, AMoreCapableCpuIsNoMatch) {
  Record r = Good("znver4", 1e-3);
  Add(r);
  query_.target = TargetOf("x86-64:haswell,cores=1");
  EXPECT_EQ(Best(), "NOT_FOUND");
}

TEST_F(StoreBestTest, ReMeasurementsCorrectTheMedian) {
  Add(Good("lucky", 1e-3));
  Add(Good("steady", 2e-3));
  ASSERT_TRUE(store_->AddMeasurement(IdOf("lucky"), Good("lucky", 3e-3)).ok());
  EXPECT_EQ(Best(), "steady");
  ASSERT_TRUE(
      store_->AddMeasurement(IdOf("steady"), Good("steady", 2.5e-3)).ok());
  const auto best = store_->FindBest(query_);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->record.median_seconds, 2.5e-3);
  EXPECT_EQ(best->record.seconds[1], 2.5e-3);
  // A measurement on another device or protocol does not affect the record.
  Record elsewhere = Good("steady", 9.0);
  elsewhere.device = "other#1";
  ASSERT_TRUE(store_->AddMeasurement(IdOf("steady"), elsewhere).ok());
  EXPECT_EQ(Best(), "steady");
}

TEST_F(StoreBestTest, AFailedReMeasurementDisqualifies) {
  Add(Good("racy", 1e-3));
  Add(Good("steady", 2e-3));
  Record wrong = Good("racy", 1e-3);
  wrong.status = Status::kWrongResult;
  ASSERT_TRUE(store_->AddMeasurement(IdOf("racy"), wrong).ok());
  EXPECT_EQ(Best(), "steady");
  Record lost = Good("steady", 0);
  lost.status = Status::kDeviceLost;
  ASSERT_TRUE(store_->AddMeasurement(IdOf("steady"), lost).ok());
  EXPECT_EQ(Best(), "steady");
}

TEST_F(StoreBestTest, ATensorizedTraceNeedsItsFeatures) {
  Record r = Good("amx", 1e-3);
  r.target = TargetOf("x86-64:sapphirerapids,cores=1").Key();
  r.trace += "sch.tensorize(block_or_loop=l5, tensor_intrin=\"amx\")\n";
  Add(r);
  query_.target = TargetOf("x86-64:sapphirerapids,cores=1");
  EXPECT_EQ(Best(), "amx");
  query_.target.features = {"-amx-tile"};
  EXPECT_EQ(Best(), "NOT_FOUND");
}

TEST_F(StoreBestTest, AQueryNeedsAProgram) {
  query_.program = nullptr;
  EXPECT_EQ(Best(), "INVALID_ARGUMENT");
}

TEST_F(StoreBestTest, ALibrarysKernelOnlyWherePermitted) {
  Record library = Good("library", 1e-4);
  library.trace = kLibraryTrace;
  Add(library);
  // Without other records there is no answer, and the message says so.
  const absl::Status none = store_->FindBest(query_).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("1 that call openblas.sgemm (--allow-library"));
  Add(Good("ours", 2e-4));
  EXPECT_EQ(Best(), "ours");
  EXPECT_THAT(store_->FindBest(query_)->reason,
              HasSubstr("without 1 that call openblas.sgemm"));
  query_.allow_library = true;
  EXPECT_EQ(Best(), "library");
  EXPECT_EQ(store_->FindBest(query_)->record.library(), "openblas.sgemm");
  EXPECT_EQ(store_->FindBest(query_)->reason, "exact device model");
}

TEST_F(StoreBestTest, OnlyRecordsThatKeepFloatsWhereAskedFor) {
  Record changed = Good("changed", 1e-4);
  changed.trace += "b1 = sch.get_block(name=\"C\", func_name=\"main\")\n";
  Add(changed);
  int asked = 0;
  query_.keeps_floats = [&](const std::string& program,
                            const std::string& trace) {
    ++asked;
    EXPECT_EQ(program, changed.program);
    return trace != changed.trace;
  };
  const absl::Status none = store_->FindBest(query_).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("1 that round differently or leave out terms "
                        "(--strict-fp, --no-winograd)"));
  Add(Good("kept", 2e-4));
  Add(Good("kept, too", 3e-4));
  asked = 0;
  EXPECT_EQ(Best(), "kept");
  EXPECT_EQ(asked, 2) << "once for each sketch";
  EXPECT_THAT(store_->FindBest(query_)->reason,
              HasSubstr("without 1 that round differently"));
  query_.keeps_floats = nullptr;
  EXPECT_EQ(Best(), "changed");
  EXPECT_EQ(store_->FindBest(query_)->reason, "exact device model");
}

}  // namespace
}  // namespace tilefarm::database
