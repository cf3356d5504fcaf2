// Which records an import accepts, rejects, or accepts with restrictions.
#include "server/jobs/record_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "tests/server/fake_search.h"

namespace tilefarm::jobs {
namespace {

using ::testing::HasSubstr;
using testing::kFingerprint;
using testing::TestTarget;

class RecordImportTest : public ::testing::Test {
 protected:
  RecordImportTest()
      : matmul_(*ir::ParseFunction(testing::kMatmul)),
        store_(*database::Store::Open(":memory:",
                                      database::Store::Mode::kReadWrite)),
        import_(*store_) {}

  database::Record Good(const std::string& id) const {
    database::Record record;
    record.candidate_id = id;
    record.workload_hash = ir::WorkloadHash(*matmul_);
    record.program = testing::kMatmul;
    record.target = TestTarget().Key();
    record.seconds = {1e-3};
    record.median_seconds = 1e-3;
    record.verified = true;
    record.fingerprint = kFingerprint;
    return record;
  }
  // The same shapes, but another function.
  database::Record Variant(const std::string& id) const {
    database::Record record = Good(id);
    const size_t product = record.program.find("A[vi, vk] * B");
    record.program.replace(product, 13, "A[vi, vk] + B");
    record.median_seconds = 1e-6;
    return record;
  }
  absl::Status Add(const database::Record& record) {
    return import_.Add(database::RecordToJson(record));
  }
  absl::StatusOr<database::BestMatch> Best() const {
    return store_->FindBest({.program = matmul_,
                             .target = TestTarget(),
                             .fingerprint = kFingerprint});
  }

  const ir::PrimFuncPtr matmul_;
  const std::unique_ptr<database::Store> store_;
  RecordImport import_;
};

TEST_F(RecordImportTest, CountsWhatIsNewAndWhatWasThere) {
  ASSERT_TRUE(Add(Good("a")).ok());
  ASSERT_TRUE(import_.Add("  ").ok());
  ASSERT_TRUE(Add(Good("b")).ok());
  ASSERT_TRUE(Add(Good("a")).ok());
  ASSERT_TRUE(import_.Finish().ok());
  EXPECT_EQ(import_.added(), 2);
  EXPECT_EQ(import_.known(), 1);
  EXPECT_EQ(import_.variants(), 0);
  EXPECT_TRUE(Best().ok());
}

TEST_F(RecordImportTest, AnotherProgramIsAVariantThatIsNeverTheBest) {
  database::Record variant = Variant("v");
  database::Record later = variant;
  variant.remeasured.push_back(later);
  ASSERT_TRUE(Add(variant).ok());
  ASSERT_TRUE(Add(Good("a")).ok());
  ASSERT_TRUE(import_.Finish().ok());
  EXPECT_EQ(import_.added(), 2);
  EXPECT_EQ(import_.variants(), 1);
  const auto best = Best();
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->record.candidate_id, "a");
  const auto stored =
      store_->FindRecords(variant.workload_hash, variant.target);
  ASSERT_EQ(stored->size(), 2u);
  EXPECT_EQ(stored->front().program, variant.program);
  EXPECT_FALSE(stored->front().verified);
}

TEST_F(RecordImportTest, WhatHasNoRecordIsNoExport) {
  ASSERT_TRUE(import_.Add("  ").ok());
  const absl::Status status = import_.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no record in it"));
}

TEST_F(RecordImportTest, TheExportOfAnEmptyDatabaseIsTaken) {
  EXPECT_TRUE(import_.Finish().ok());
  EXPECT_EQ(import_.added() + import_.known(), 0);
}

TEST_F(RecordImportTest, ErrorsNameTheLine) {
  ASSERT_TRUE(Add(Good("a")).ok());
  database::Record bad = Good("b");
  bad.program = "def";
  absl::Status status = Add(bad);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("line 2: "));
  bad = Good("c");
  bad.target = "host";
  status = Add(bad);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("target 'host'"));
  EXPECT_EQ(import_.Add("{}").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RecordImportTest, RefusesAProgramThatCannotBeCompiled) {
  database::Record bad = Good("a");
  const size_t shape = bad.program.find("(16, 16)");
  bad.program.replace(shape, 8, "(16, 15)");
  const absl::Status status = Add(bad);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("index 1 of read of A reaches from 0 to 15"));
}

}  // namespace
}  // namespace tilefarm::jobs
