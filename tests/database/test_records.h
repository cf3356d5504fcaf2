// Records and files for the database tests.
#ifndef TILEFARM_TESTS_DATABASE_TEST_RECORDS_H_
#define TILEFARM_TESTS_DATABASE_TEST_RECORDS_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "database/record.h"

namespace tilefarm::database {

// A folder that is removed at the end of the test.
class TempFolder {
 public:
  TempFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "tilefarm-db-XXXXXX")
            .string();
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string File(const std::string& name) const {
    return (path_ / name).string();
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline constexpr char kProgram[] =
    R"py(@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            v_i = T.axis.spatial(64, i)
            B[v_i] = A[v_i] + T.float32(1)
)py";

// The same function with other names and shape texts.
inline constexpr char kSameProgram[] =
    R"py(@T.prim_func
def other(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32")):
    # a comment
    for k in range(64):
        with T.block("add_one"):
            v = T.axis.spatial(64, k)
            Y[v] = X[v] + T.float32(1)
)py";

inline constexpr char kOtherProgram[] =
    R"py(@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            v_i = T.axis.spatial(64, i)
            B[v_i] = A[v_i] + T.float32(2)
)py";

inline constexpr char kTrace[] =
    "b0 = sch.get_block(name=\"B\", func_name=\"main\")\n"
    "l1, = sch.get_loops(block=b0)\n"
    "v2, v3 = sch.sample_perfect_tile(loop=l1, n=2, "
    "max_innermost_factor=64, decision=[4, 16])\n"
    "l4, l5 = sch.split(loop=l1, factors=[v2, v3])\n"
    "v6 = sch.sample_categorical(candidates=[0, 16], probs=[0.5, 0.5], "
    "decision=1)\n"
    "sch.vectorize(loop=l5)\n";

inline Record MakeRecord(const std::string& candidate_id,
                         double median_seconds = 1e-3) {
  Record r;
  r.candidate_id = candidate_id;
  r.workload_hash = std::string(64, 'a');
  r.program = kProgram;
  r.target = "x86-64:znver4,cores=1";
  r.trace = kTrace;
  r.device = "box#0123";
  r.device_model = "AMD EPYC 9R14; znver4";
  r.status = Status::kOk;
  r.seconds = {median_seconds * 0.9, median_seconds, median_seconds * 1.25};
  r.median_seconds = median_seconds;
  r.ci_low_seconds = median_seconds * 0.9;
  r.ci_high_seconds = median_seconds * 1.25;
  r.verified = true;
  r.max_abs_error = 1e-7;
  r.max_rel_error = 2e-7;
  r.compile_seconds = 0.04;
  r.isolation = "rlimits";
  r.device_state = R"({"clock_mhz": 3700})";
  r.fingerprint = "llvm-19.1.7+tf1";
  r.code_digest = "c0de";
  r.job_id = "job-1";
  r.model_score = "0.75";
  r.sequence = 7;
  r.recorded_at = "2026-01-02T03:04:05Z";
  return r;
}

}  // namespace tilefarm::database

#endif  // TILEFARM_TESTS_DATABASE_TEST_RECORDS_H_
