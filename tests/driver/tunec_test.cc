// tunec as a process: exit codes, output files, messages.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tilefarm {
namespace {

namespace fs = std::filesystem;

constexpr char kProgram[] = R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * T.float32(2)
)";

struct Result {
  int code;
  std::string out, err;
};

class Tunec : public testing::Test {
 protected:
  Tunec() {
    std::string pattern = testing::TempDir() + "/tunec-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    Write("program.py", kProgram);
  }
  ~Tunec() override { fs::remove_all(folder_); }

  fs::path Path(const char* name) const { return folder_ / name; }
  void Write(const char* name, const std::string& text) {
    std::ofstream(Path(name)) << text;
  }
  std::string Read(const char* name) const {
    std::ifstream file(Path(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Runs tunec in the folder.
  Result Run(const std::string& arguments) {
    const std::string command =
        absl::StrCat("cd ", folder_.string(), " && ", TILEFARM_BIN_DIR,
                     "/tunec ", arguments, " >out.txt 2>err.txt");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read("out.txt"),
            Read("err.txt")};
  }

  fs::path folder_;
};

TEST_F(Tunec, BuildsTheDefaultScheduleAndSaysSo) {
  const Result result =
      Run("program.py --target host,cores=1 -o out.so --json");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("default schedule"));
  EXPECT_TRUE(fs::exists(Path("out.so")));
  EXPECT_THAT(Read("out.h"), testing::HasSubstr("int tilefarm_main("));
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["functions"][0]["schedule"], "default");
  EXPECT_EQ(json["functions"][0]["symbol"], "tilefarm_main");
}

TEST_F(Tunec, AsIsWithSymbolAndHeader) {
  const Result result =
      Run("program.py --target host --as-is --symbol twice -o out.so "
          "--header twice.h");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(Read("twice.h"), testing::HasSubstr("int twice("));
  EXPECT_FALSE(fs::exists(Path("out.h")));
}

TEST_F(Tunec, AppliesATrace) {
  Write("trace.py",
        "b0 = sch.get_block(\"B\")\nl1, = sch.get_loops(b0)\n"
        "sch.vectorize(l1)\n");
  const Result result =
      Run("program.py --target host --trace trace.py -o out.so");
  EXPECT_EQ(result.code, 0) << result.err;
  Write("trace.py", "b0 = sch.get_block(\"nowhere\")\n");
  const Result bad = Run("program.py --target host --trace trace.py -o no.so");
  EXPECT_EQ(bad.code, 1);
  EXPECT_FALSE(fs::exists(Path("no.so")));
}

TEST_F(Tunec, RequireTunedExits3AndBuildsNothing) {
  const Result result =
      Run("program.py --target host --require-tuned -o out.so");
  EXPECT_EQ(result.code, 3);
  EXPECT_FALSE(fs::exists(Path("out.so")));
}

TEST_F(Tunec, MissingDatabaseIsAnError) {
  const Result result = Run("program.py --target host --db none.db -o out.so");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, testing::HasSubstr("none.db"));
  EXPECT_FALSE(fs::exists(Path("none.db")));
}

TEST_F(Tunec, FailuresAreReportedWithExitCode1) {
  EXPECT_EQ(Run("missing.py --target host -o out.so").code, 1);
  EXPECT_EQ(Run("program.py --target nowhere -o out.so").code, 1);
  EXPECT_EQ(Run("program.py --target host -o missing/folder/out.so").code, 1);
  Write("bad.py", "@T.prim_func\ndef f(:\n");
  const Result bad = Run("bad.py --target host -o out.so");
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, testing::HasSubstr("bad.py:2:"));
}

TEST_F(Tunec, RefusesAProvablyWrongAccessByEveryWayIn) {
  // The default schedule would vectorize the loop under a guard of its tail,
  // and a guarded access is no provable error.
  Write("bad.py", R"(
@T.prim_func
def main(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
    for i in range(1000):
        with T.block("B"):
            vi = T.axis.spatial(1000, i)
            B[vi] = A[vi]
)");
  Write("trace.py",
        "b0 = sch.get_block(\"B\")\nl1, = sch.get_loops(b0)\n"
        "l2, l3 = sch.split(l1, factors=[None, 16])\n");
  ASSERT_TRUE(database::Store::Open(Path("some.db").string(),
                                    database::Store::Mode::kReadWrite)
                  .ok());
  for (const char* way : {"", "--as-is", "--trace trace.py", "--db some.db"}) {
    SCOPED_TRACE(way);
    const Result result = Run(absl::StrCat(
        "bad.py --target x86-64:x86-64-v3,cores=1 -o out.so ", way));
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.err,
                testing::HasSubstr("tunec: bad.py: error: function main: block "
                                   "\"B\": index 0 of read of A reaches from 0 "
                                   "to 999, outside of 0 to 6"));
    EXPECT_FALSE(fs::exists(Path("out.so")));
  }
}

TEST_F(Tunec, AsksTheServerOfTheEnvironmentUnlessAnotherWayIsGiven) {
  // Nobody listens on port 1.
  ASSERT_EQ(setenv("TUNE_SERVER", "127.0.0.1:1", 1), 0);
  const Result asked = Run("program.py --target host,cores=1 -o out.so");
  EXPECT_EQ(asked.code, 1);
  EXPECT_THAT(asked.err, testing::HasSubstr("127.0.0.1:1"));
  const Result flag =
      Run("program.py --target host,cores=1 -o out.so --server 127.0.0.1:2");
  EXPECT_EQ(flag.code, 1);
  EXPECT_THAT(flag.err, testing::HasSubstr("127.0.0.1:2"));
  EXPECT_FALSE(fs::exists(Path("out.so")));
  ASSERT_TRUE(database::Store::Open(Path("some.db").string(),
                                    database::Store::Mode::kReadWrite)
                  .ok());
  for (const char* way : {"--as-is", "--db some.db"}) {
    const Result result =
        Run(absl::StrCat("program.py --target host,cores=1 -o out.so ", way));
    EXPECT_EQ(result.code, 0) << way << ": " << result.err;
  }
  unsetenv("TUNE_SERVER");
}

TEST_F(Tunec, BadUsageExits2) {
  EXPECT_EQ(Run("").code, 2);
  EXPECT_EQ(Run("program.py -o out.so").code, 2);
  EXPECT_EQ(Run("program.py --target host").code, 2);
  EXPECT_EQ(Run("program.py --target host -o out.so --db a --as-is").code, 2);
  EXPECT_EQ(Run("program.py --target host -o out.so --frobnicate").code, 2);
}

TEST_F(Tunec, Version) {
  const Result result = Run("--version");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out,
              testing::ContainsRegex("^tunec [0-9.]+\nprotocol [0-9]+\n"
                                     "schema [0-9]+\nfingerprint llvm-"));
}

}  // namespace
}  // namespace tilefarm
