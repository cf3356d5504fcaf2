// tunec as a process: exit codes, output files, messages.
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "compiler/target/target.h"
#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/database/test_records.h"

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

// What the header declares is what the library has, and nothing else.
TEST_F(Tunec, HeaderAndLibraryAgree) {
  const Result built =
      Run("program.py --target host,cores=2 --symbol twice -o libtwice.so");
  ASSERT_EQ(built.code, 0) << built.err;
  Write("main.c", R"(#include <stdio.h>
#include "libtwice.h"
int main(void) {
  const tf_function_info* info = twice_info();
  int i;
  if (info->size != sizeof(tf_function_info)) return 2;
  for (i = 0; i < info->parameter_count; ++i) {
    const tf_parameter_info* one = &info->parameters[i];
    printf("%s %d %ld bytes %d\n", one->name, (int)one->dtype,
           (long)one->bytes, (int)one->written);
  }
  printf("%s for %s\n", info->name, info->target);
  return 0;
}
)");
  const std::string command = absl::StrCat(
      "cd ", folder_.string(),
      " && cc -std=c99 -Wall -Wextra -pedantic -Werror main.c ./libtwice.so "
      "-o main && ./main > main.txt && nm -D --defined-only libtwice.so "
      "> nm.txt");
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(Read("main.txt"), testing::HasSubstr("A 1 256 bytes 0\n"
                                                   "B 1 256 bytes 1\n"
                                                   "twice for "));
  std::istringstream lines(Read("nm.txt"));
  std::vector<std::string> symbols;
  for (std::string address, kind, name; lines >> address >> kind >> name;) {
    symbols.push_back(name);
  }
  EXPECT_THAT(symbols, testing::UnorderedElementsAre("twice", "twice_info"));
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

TEST_F(Tunec, ReplacesNoDeviceByItsOutput) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const Result result = Run("program.py --target host -o pipe");
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.err, testing::HasSubstr("is not a regular file"));
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
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
  // The default schedule would vectorize the loop with a guard for its tail,
  // and an error in a guarded access cannot be proven.
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
  // No process listens on port 1.
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

// One dimension of a convolution of stride 1: without a copy of the padding its
// schedule loses NaN at the border.
constexpr char kConvolution[] = R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), W: T.Buffer((3,), "float32"), C: T.Buffer((64,), "float32")):
    P = T.alloc_buffer((66,), "float32")
    for i in range(66):
        with T.block("P"):
            v = T.axis.spatial(66, i)
            P[v] = T.if_then_else(1 <= v and v < 65, A[v - 1], T.float32(0))
    for i, k in T.grid(64, 3):
        with T.block("C"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + P[v + vk] * W[vk]
)";
constexpr char kSkips[] =
    "b0 = sch.get_block(\"P\")\nsch.compute_inline(b0)\n"
    "b1 = sch.get_block(\"C\")\n"
    "sch.annotate(b1, \"tilefarm.skip_padding\", 1)\n";

TEST_F(Tunec, StrictFpPassesOverRecordsThatChangeFloats) {
  Write("conv.py", kConvolution);
  const auto function = ir::ParseFunction(kConvolution);
  ASSERT_TRUE(function.ok()) << function.status();
  const auto target = target::Parse("x86-64:x86-64-v3,cores=1");
  const auto add = [&](const std::string& id, double seconds,
                       const std::string& trace) {
    database::Record record = database::MakeRecord(id, seconds);
    record.workload_hash = ir::WorkloadHash(**function);
    record.program = ir::Print(**function);
    record.target = target->Key();
    record.trace = trace;
    record.fingerprint = driver::Fingerprint();
    auto store = database::Store::Open(Path("some.db").string(),
                                       database::Store::Mode::kReadWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto added = (*store)->AddRecords(std::vector{record});
    ASSERT_TRUE(added.ok()) << added.status();
  };
  const std::string build =
      "conv.py --target x86-64:x86-64-v3,cores=1 -o out.so --db some.db ";
  add("skips", 1e-6, kSkips);
  // As it was verified.
  EXPECT_THAT(Run(build).err, testing::HasSubstr("record of 1.000 us"));
  const Result none = Run(build + "--strict-fp");
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.err,
              testing::HasSubstr("default schedule, since no usable record"));
  EXPECT_THAT(none.err, testing::HasSubstr("1 that round differently or leave "
                                           "out terms (--strict-fp, "
                                           "--no-winograd)"));
  add("copies", 2e-6, "b0 = sch.get_block(\"C\")\n");
  const Result next = Run(build + "--strict-fp");
  EXPECT_EQ(next.code, 0) << next.err;
  EXPECT_THAT(next.err, testing::HasSubstr("record of 2.000 us"));
  EXPECT_THAT(next.err, testing::HasSubstr("without 1 that round differently"));
}

TEST_F(Tunec, StrictFpRefusesATraceThatChangesFloats) {
  Write("conv.py", kConvolution);
  Write("trace.py", kSkips);
  const std::string build = "conv.py --target host --trace trace.py -o out.so ";
  EXPECT_EQ(Run(build).code, 0);
  fs::remove(Path("out.so"));
  const Result strict = Run(build + "--strict-fp");
  EXPECT_EQ(strict.code, 1);
  EXPECT_THAT(strict.err, testing::HasSubstr("it leaves out terms"));
  EXPECT_FALSE(fs::exists(Path("out.so")));
}

TEST_F(Tunec, AllowRoundingChangesTheDefaultSchedule) {
  Write("conv.py", kConvolution);
  const std::string build =
      "conv.py --target x86-64:x86-64-v3,cores=1 -o out.so --json ";
  const auto digest = [&](const std::string& flag) {
    const Result result = Run(build + flag);
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out)["code_digest"].dump();
  };
  EXPECT_NE(digest(""), digest("--allow-rounding"));
  EXPECT_EQ(digest(""), digest("--strict-fp"));
}

// A program of two functions, one with a record.
constexpr char kTwoFunctions[] = R"(
@I.ir_module
class Module:
    @T.prim_func
    def twice(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * T.float32(2)
    @T.prim_func
    def thrice(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * T.float32(3)
)";

class TunecRecords : public Tunec {
 protected:
  TunecRecords() { Write("two.py", kTwoFunctions); }
  void AddRecord(const std::string& id, double seconds,
                 const std::string& factor, const char* file = "some.db",
                 const std::string& fingerprint = driver::Fingerprint()) {
    const auto module = ir::ParseModule(kTwoFunctions);
    ASSERT_TRUE(module.ok()) << module.status();
    database::Record record = database::MakeRecord(id, seconds);
    record.workload_hash = ir::WorkloadHash(*module->functions[0]);
    record.program = ir::Print(*module->functions[0]);
    record.target = target::Parse("x86-64:x86-64-v3,cores=1")->Key();
    record.trace =
        "b0 = sch.get_block(name=\"B\", func_name=\"twice\")\n"
        "l1, = sch.get_loops(block=b0)\n"
        "l2, l3 = sch.split(loop=l1, factors=[None, " +
        factor + "])\n";
    record.fingerprint = fingerprint;
    auto store = database::Store::Open(Path(file).string(),
                                       database::Store::Mode::kReadWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto added = (*store)->AddRecords(std::vector{record});
    ASSERT_TRUE(added.ok()) << added.status();
  }

  const std::string build_ =
      "two.py --target x86-64:x86-64-v3,cores=1 -o out.so --json ";
};

TEST_F(TunecRecords, ExplainsWhatItChose) {
  AddRecord("first", 2e-6, "4");
  AddRecord("second", 3e-6, "8");
  AddRecord("stale", 1e-6, "16", "some.db", "llvm-1+tf1");
  const std::string ask =
      "two.py --target x86-64:x86-64-v3,cores=1 --db some.db --explain";
  const Result text = Run(ask);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out, "");
  EXPECT_THAT(text.err, testing::HasSubstr("3 records considered"));
  EXPECT_THAT(text.err, testing::HasSubstr("stale: made by another compiler"));
  EXPECT_THAT(text.err, testing::HasSubstr("0 records considered"));
  // With --output it builds as well.
  const Result built = Run(build_ + "--db some.db --explain");
  EXPECT_EQ(built.code, 0) << built.err;
  EXPECT_TRUE(fs::exists(Path("out.so")));
  for (const std::string& output : {Run(ask + " --json").out, built.out}) {
    const auto json = nlohmann::json::parse(output, nullptr, false);
    const auto& twice = json["functions"][0];
    EXPECT_EQ(twice["explanation"]["found"], true);
    EXPECT_EQ(twice["explanation"]["candidate_id"], "first");
    EXPECT_EQ(twice["explanation"]["records"].size(), 3u);
    EXPECT_EQ(twice["explanation"]["records"][2]["fate"], "stale");
    EXPECT_EQ(json["functions"][1]["explanation"]["found"], false);
    EXPECT_EQ(json["functions"][1]["schedule"], "default");
  }
}

TEST_F(TunecRecords, ExplainNeedsALookup) {
  AddRecord("first", 2e-6, "4");
  const std::string ask = "two.py --target x86-64:x86-64-v3,cores=1 --explain";
  EXPECT_EQ(Run(ask).code, 2);
  EXPECT_EQ(Run(ask + " --as-is -o out.so").code, 2);
  EXPECT_EQ(Run(ask + " --db none.db").code, 1);
  EXPECT_EQ(Run(ask + " --db some.db --require-tuned").code, 3);
}

TEST_F(TunecRecords, SeveralDatabases) {
  AddRecord("slow", 2e-6, "4", "local.db");
  AddRecord("fast", 1e-6, "8", "team.db");
  const Result both = Run(build_ + "--db local.db --db team.db");
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.err, testing::HasSubstr("record of 2.000 us"));
  EXPECT_THAT(both.err, testing::HasSubstr(" from local.db"));
  auto json = nlohmann::json::parse(both.out, nullptr, false);
  EXPECT_EQ(json["functions"][0]["candidate_id"], "slow");
  EXPECT_EQ(json["functions"][0]["database"], "local.db");
  const Result turned = Run(build_ + "--db team.db --db local.db");
  EXPECT_THAT(turned.err, testing::HasSubstr(" from team.db"));
  const Result one = Run(build_ + "--db team.db");
  EXPECT_EQ(one.err.find(" from "), std::string::npos) << one.err;
  const Result missing = Run(build_ + "--db local.db --db none.db");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, testing::HasSubstr("none.db"));
  EXPECT_EQ(Run(build_ + "--db local.db --db local.db").code, 1);
}

class TunecLock : public TunecRecords {
 protected:
  TunecLock() {
    AddRecord("first", 2e-6, "4");
    const Result built = Run(build_ + "--db some.db --write-lock k.lock");
    EXPECT_EQ(built.code, 0) << built.err;
    library_ = Read("out.so");
    EXPECT_NE(library_, "");
  }
  // Builds by the lock, which must fail for this reason and build nothing.
  void ExpectRefusal(const std::string& arguments, const std::string& reason) {
    fs::remove(Path("out.so"));
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 1) << result.err;
    EXPECT_THAT(result.err, testing::HasSubstr(reason));
    EXPECT_FALSE(fs::exists(Path("out.so")));
  }

  std::string library_;
};

TEST_F(TunecLock, GivesTheSameBytesAfterTheDatabaseChanged) {
  const auto lock = nlohmann::json::parse(Read("k.lock"));
  EXPECT_EQ(lock["target"], "x86-64:x86-64-v3,cores=1");
  EXPECT_EQ(lock["fingerprint"], driver::Fingerprint());
  ASSERT_EQ(lock["functions"].size(), 2u);
  EXPECT_EQ(lock["functions"][0]["schedule"], "record");
  EXPECT_EQ(lock["functions"][0]["candidate_id"], "first");
  EXPECT_EQ(lock["functions"][1]["schedule"], "default");

  AddRecord("second", 1e-6, "16");
  ASSERT_EQ(Run(build_ + "--db some.db").code, 0);
  EXPECT_NE(Read("out.so"), library_);
  fs::remove(Path("some.db"));
  const Result locked = Run(build_ + "--locked k.lock");
  EXPECT_EQ(locked.code, 0) << locked.err;
  EXPECT_EQ(Read("out.so"), library_);
  EXPECT_THAT(locked.err, testing::HasSubstr("(locked: "));
  const auto json = nlohmann::json::parse(locked.out);
  EXPECT_EQ(json["functions"][0]["candidate_id"], "first");
}

TEST_F(TunecLock, TheSameChoicesAreTheSameFile) {
  const std::string lock = Read("k.lock");
  ASSERT_EQ(Run(build_ + "--db some.db --write-lock again.lock").code, 0);
  EXPECT_EQ(Read("again.lock"), lock);
}

TEST_F(TunecLock, AFunctionWithoutAnEntryIsRefused) {
  std::string changed = kTwoFunctions;
  changed.replace(changed.find("T.float32(3)"), 12, "T.float32(5)");
  Write("two.py", changed);
  ExpectRefusal(build_ + "--locked k.lock",
                "no entry for function thrice as it is now");
}

TEST_F(TunecLock, AnotherTargetOrCompilerIsRefused) {
  ExpectRefusal(
      "two.py --target x86-64:x86-64-v3,cores=2 -o out.so "
      "--locked k.lock",
      "is of target x86-64:x86-64-v3,cores=1, not");
  auto lock = nlohmann::ordered_json::parse(Read("k.lock"));
  lock["fingerprint"] = "llvm-1+tf1";
  Write("other.lock", lock.dump());
  ExpectRefusal(build_ + "--locked other.lock",
                "written by the compiler llvm-1+tf1");
}

TEST_F(TunecLock, AScheduleThatComesOutDifferentlyIsRefused) {
  auto lock = nlohmann::ordered_json::parse(Read("k.lock"));
  lock["functions"][1]["scheduled"] = std::string(64, '0');
  Write("other.lock", lock.dump());
  ExpectRefusal(build_ + "--locked other.lock",
                "the locked schedule of thrice does not come out");
}

TEST_F(TunecLock, DamagedLockFilesAreRefused) {
  auto lock = nlohmann::ordered_json::parse(Read("k.lock"));
  const auto refuse = [&](const nlohmann::ordered_json& json,
                          const std::string& reason) {
    Write("other.lock", json.dump());
    ExpectRefusal(build_ + "--locked other.lock", "other.lock: " + reason);
  };
  auto bad = lock;
  bad["functions"][0]["trace"] = "b0 = sch.get_block(name=\"B\")\n";
  refuse(bad, "the entry of 'twice' was edited");
  bad = lock;
  bad["version"] = 2;
  refuse(bad, "not a lock file of version 1");
  bad = lock;
  bad.erase("functions");
  refuse(bad, "it has no list 'functions'");
  bad = lock;
  bad["functions"][1].erase("scheduled");
  refuse(bad, "the entry of 'thrice' has no 'scheduled'");
  bad = lock;
  bad["functions"][1]["schedule"] = "by hand";
  refuse(bad, "the entry of 'thrice' has the unknown schedule 'by hand'");
  bad = lock;
  bad["functions"].push_back(lock["functions"][0]);
  refuse(bad, "it has two entries of 'twice'");
  refuse({{"a", 1}}, "not a lock file of version 1");
  Write("other.lock", "no JSON");
  ExpectRefusal(build_ + "--locked other.lock", "not a JSON object");
  ExpectRefusal(build_ + "--locked none.lock", "none.lock");
}

TEST_F(TunecLock, BadUsageExits2) {
  EXPECT_EQ(Run(build_ + "--locked k.lock --db some.db").code, 2);
  EXPECT_EQ(Run(build_ + "--locked k.lock --as-is").code, 2);
  EXPECT_EQ(Run(build_ + "--locked k.lock --write-lock b.lock").code, 2);
  EXPECT_EQ(Run(build_ + "--as-is --write-lock b.lock").code, 2);
  EXPECT_FALSE(fs::exists(Path("b.lock")));
}

TEST_F(Tunec, BadUsageExits2) {
  EXPECT_EQ(Run("program.py --target host -o out.so --strict-fp "
                "--allow-rounding")
                .code,
            2);
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
