// Database files with records of one program, for tests of lookups.
#ifndef TILEFARM_TESTS_DATABASE_LOOKUP_FIXTURE_H_
#define TILEFARM_TESTS_DATABASE_LOOKUP_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "compiler/target/target.h"
#include "database/store.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {

class LookupTest : public ::testing::Test {
 protected:
  LookupTest() {
    query_.program = *ir::ParseFunction(kProgram);
    query_.target = *target::Parse("x86-64:znver4,cores=1");
    query_.device_model = "AMD EPYC 9R14; znver4";
    query_.fingerprint = "llvm-19.1.7+tf1";
  }
  // A record that fits the query exactly.
  Record Good(const std::string& id, double median) const {
    Record r = MakeRecord(id, median);
    r.workload_hash = ir::WorkloadHash(*query_.program);
    r.target = query_.target.Key();
    return r;
  }
  // Adds the records to a file and returns its path.
  std::string File(const std::string& name,
                   const std::vector<Record>& records) const {
    const std::string path = folder_.File(name);
    auto store = Store::Open(path, Store::Mode::kReadWrite);
    EXPECT_TRUE(store.ok()) << store.status();
    const auto added = (*store)->AddRecords(records);
    EXPECT_TRUE(added.ok()) << added.status();
    return path;
  }
  static std::unique_ptr<Store> Reader(const std::string& path) {
    auto store = Store::Open(path, Store::Mode::kReadOnly);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  static std::vector<std::string> Candidates(const std::string& path) {
    std::vector<std::string> ids;
    EXPECT_TRUE(Reader(path)
                    ->ForEachRecord([&](const Record& r) {
                      ids.push_back(r.candidate_id);
                      return true;
                    })
                    .ok());
    return ids;
  }

  const TempFolder folder_;
  BestQuery query_;
};

}  // namespace tilefarm::database

#endif  // TILEFARM_TESTS_DATABASE_LOOKUP_FIXTURE_H_
