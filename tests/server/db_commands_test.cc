// `tune db` and `tune best` on files, as processes: output, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/driver/compile.h"
#include "tests/database/lookup_fixture.h"
#include "tests/support/process.h"

namespace tilefarm::cli {
namespace {

namespace fs = std::filesystem;
using database::Record;
using database::Status;
using testing::CommandResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RunCommand;
using Json = nlohmann::json;

class DbCommandsTest : public database::LookupTest {
 protected:
  CommandResult Tune(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     std::string(TILEFARM_BIN_DIR) + "/tune");
    return RunCommand(std::move(arguments));
  }
  Json TuneJson(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const CommandResult result = Tune(std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return Json::parse(result.output, nullptr, false);
  }
  // The command fails with this code and message.
  void ExpectFailure(std::vector<std::string> arguments, int code,
                     const std::string& message) const {
    const CommandResult result = Tune(std::move(arguments));
    EXPECT_EQ(result.exit_code, code) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(message));
    EXPECT_EQ(result.output, "");
  }
  // A record that a lookup of this compiler finds.
  Record Fresh(const std::string& id, double median) const {
    Record r = Good(id, median);
    r.fingerprint = driver::Fingerprint();
    return r;
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }
  std::string WriteProgram() const {
    std::ofstream(Path("program.py")) << database::kProgram;
    return Path("program.py");
  }
  std::string MakeKey(const std::string& name) const {
    const std::string key = Path(name + ".pem");
    EXPECT_EQ(RunCommand({"/usr/bin/env", "openssl", "genpkey", "-algorithm",
                          "ed25519", "-out", key})
                  .exit_code,
              0);
    chmod(key.c_str(), 0600);
    EXPECT_EQ(RunCommand({"/usr/bin/env", "openssl", "pkey", "-in", key,
                          "-pubout", "-out", Path(name + ".pub")})
                  .exit_code,
              0);
    return key;
  }
};

TEST_F(DbCommandsTest, Merge) {
  const std::string a = File("a.db", {Good("a", 1e-3), Good("both", 1e-3)});
  const std::string b = File("b.db", {Good("both", 1e-3), Good("b", 1e-3)});
  const std::string out = Path("out.db");
  EXPECT_EQ(TuneJson({"db", "merge", a, b, "-o", out}),
            (Json{{"file", out},
                  {"added", 3},
                  {"known", 1},
                  {"other_device_model", 0}}));
  const CommandResult again = Tune({"db", "merge", b, "--output", out});
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.output, HasSubstr("0 records added, 2 known before"));
  EXPECT_THAT(Candidates(out), ElementsAre("a", "both", "b"));
  EXPECT_THAT(Candidates(a), ElementsAre("a", "both"));
}

TEST_F(DbCommandsTest, MergeSaysWhatIsWrong) {
  const std::string a = File("a.db", {Good("a", 1e-3)});
  ExpectFailure({"db", "merge", a, Path("none.db"), "-o", Path("out.db")}, 1,
                "none.db");
  EXPECT_FALSE(fs::exists(Path("out.db")));
  ExpectFailure({"db", "merge", a, "-o", a}, 1, "leave it out of the sources");
  ExpectFailure({"db", "merge", a, "-o", Path("o.db"), "--db", a}, 2,
                "leave out --db");
  EXPECT_EQ(Tune({"db", "merge", a}).exit_code, 2);
  EXPECT_EQ(Tune({"db", "merge", "-o", a}).exit_code, 2);
  std::ofstream(Path("text.db")) << std::string(5000, 'x');
  ExpectFailure({"db", "merge", Path("text.db"), "-o", Path("out.db")}, 1,
                "text.db");
  EXPECT_FALSE(fs::exists(Path("out.db")));
}

TEST_F(DbCommandsTest, Diff) {
  Record other = Good("v3", 1e-3);
  other.target = target::Parse("x86-64:x86-64-v3,cores=1")->Key();
  const std::string a = File("a.db", {Good("a", 3e-3), other});
  const std::string b = File("b.db", {Good("b", 2e-3)});
  const Json entries = TuneJson({"db", "diff", a, b});
  ASSERT_EQ(entries.size(), 2u) << entries;
  EXPECT_EQ(entries[1]["difference"], "faster_b");
  EXPECT_DOUBLE_EQ(entries[1]["ratio"], 1.5);
  EXPECT_EQ(entries[1]["a"]["candidate_id"], "a");
  EXPECT_EQ(entries[1]["b"]["median_seconds"], 2e-3);
  EXPECT_EQ(entries[1]["workload"], other.workload_hash);
  EXPECT_EQ(entries[0]["difference"], "only_a");
  EXPECT_EQ(entries[0]["b"], nullptr);
  const CommandResult table = Tune({"db", "diff", a, b});
  EXPECT_THAT(table.output, HasSubstr("B is 1.5 times as fast"));
  EXPECT_THAT(table.output, HasSubstr("only in A"));
  // An empty list is an answer.
  EXPECT_EQ(TuneJson({"db", "diff", File("c.db", {}), Path("c.db")}),
            Json::array());
  EXPECT_EQ(Tune({"db", "diff", a}).exit_code, 2);
  ExpectFailure({"db", "diff", a, Path("none.db")}, 1, "none.db");
}

TEST_F(DbCommandsTest, PruneDeletesOnlyOnRequest) {
  std::vector<Record> records;
  for (int i = 0; i < 5; ++i) {
    records.push_back(Good("c" + std::to_string(i), 1e-3 * (i + 1)));
  }
  records.push_back(Good("failed", 1e-3));
  records.back().status = Status::kRunError;
  const std::string path = File("a.db", records);
  const CommandResult dry = Tune({"db", "prune", "--db", path, "--keep", "2"});
  EXPECT_EQ(dry.exit_code, 0) << dry.errors;
  EXPECT_THAT(dry.output, HasSubstr("would delete 3 of 6 records"));
  EXPECT_THAT(dry.errors, HasSubstr("nothing was deleted: --delete does it"));
  EXPECT_EQ(Candidates(path).size(), 6u);
  const Json done = TuneJson({"db", "prune", "--db", path, "--keep", "2",
                              "--failed-before", "2026-01-03", "--delete"});
  EXPECT_EQ(done["deleted"], true);
  EXPECT_EQ(done["dropped"], 3);
  EXPECT_EQ(done["dropped_failed"], 1);
  EXPECT_EQ(done["kept"], 2);
  EXPECT_THAT(Candidates(path), ElementsAre("c0", "c1"));
}

TEST_F(DbCommandsTest, PruneSaysWhatIsWrong) {
  const std::string path = File("a.db", {Good("a", 1e-3)});
  ExpectFailure({"db", "prune", "--keep", "2"}, 2, "--db is missing");
  ExpectFailure({"db", "prune", "--db", path}, 2, "needs --keep N");
  ExpectFailure({"db", "prune", "--db", path, "--keep", "1", "--compact"}, 2,
                "--compact needs --delete");
  ExpectFailure({"db", "prune", "--db", path, "--failed-before", "May"}, 1,
                "'May' is not a date");
  EXPECT_EQ(Tune({"db", "prune", "--db", path, "--keep", "0"}).exit_code, 2);
  ExpectFailure({"db", "prune", "--db", Path("no.db"), "--keep", "1"}, 1,
                "no.db");
}

TEST_F(DbCommandsTest, SignedExports) {
  const std::string key = MakeKey("team");
  MakeKey("other");
  const std::string a = File("a.db", {Good("a", 1e-3), Good("b", 2e-3)});
  const std::string out = Path("out.jsonl");
  EXPECT_EQ(
      Tune({"db", "export", "--db", a, "--sign", key, "-o", out}).exit_code, 0);
  const std::string text = testing::ReadFile(out);
  const auto import = [&](const std::string& name, const std::string& pub) {
    return std::vector<std::string>{"db",     "import",       Path(name),
                                    "--db",   Path("new.db"), "--verify",
                                    Path(pub)};
  };
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(Path(name)) << bytes;
  };
  std::string altered = text;
  altered.replace(altered.find("\"median_seconds\":0.001"), 22,
                  "\"median_seconds\":0.0001");
  write("altered.jsonl", altered);
  write("cut.jsonl", text.substr(0, text.size() / 2));
  write("unsigned.jsonl", text.substr(0, text.find("{\"signature\"")));
  ExpectFailure(import("altered.jsonl", "team.pub"), 1, "was altered");
  ExpectFailure(import("cut.jsonl", "team.pub"), 1, "no signature at its end");
  ExpectFailure(import("unsigned.jsonl", "team.pub"), 1,
                "no signature at its end");
  ExpectFailure(import("out.jsonl", "other.pub"), 1, "signed with the key");
  ExpectFailure(import("out.jsonl", "none.pub"), 1, "none.pub");
  // Nothing was even opened.
  EXPECT_FALSE(fs::exists(Path("new.db")));
  const CommandResult good = Tune(import("out.jsonl", "team.pub"));
  EXPECT_EQ(good.exit_code, 0) << good.errors;
  EXPECT_THAT(good.output, HasSubstr("2 records added"));
  // Who does not verify reads the records as usual.
  EXPECT_EQ(TuneJson({"db", "import", out, "--db", Path("new.db")})["known"],
            2);
  ExpectFailure({"db", "export", "--db", a, "--sign", Path("none.pem")}, 1,
                "--sign " + Path("none.pem"));
}

TEST_F(DbCommandsTest, BestNamesTheDatabase) {
  const std::string a = File("a.db", {Fresh("slow", 2e-3)});
  const std::string b = File("b.db", {Fresh("fast", 1e-3)});
  const std::string target = query_.target.Key();
  std::vector<std::string> command = {
      "best", WriteProgram(), "--target", target, "--db", a, "--db", b};
  Json best = TuneJson(command);
  EXPECT_EQ(best["candidate_id"], "slow");
  EXPECT_EQ(best["database"], a);
  EXPECT_EQ(best.count("explanation"), 0u);
  command.push_back("--explain");
  best = TuneJson(command);
  EXPECT_EQ(best["explanation"]["candidate_id"], "slow");
  EXPECT_EQ(best["explanation"]["records"][0]["fate"], "chosen");
  EXPECT_EQ(best["explanation"]["records"][1]["fate"], "earlier_database");
  EXPECT_EQ(best["explanation"]["records"][1]["database"], b);
  const CommandResult text = Tune(command);
  EXPECT_THAT(text.output, HasSubstr("2 records considered"));
  EXPECT_THAT(text.output,
              HasSubstr("fits as well, but an earlier database has a record"));
  command.insert(command.end(), {"--print", "trace"});
  const CommandResult printed = Tune(command);
  EXPECT_EQ(printed.output, std::string(database::kTrace));
  EXPECT_THAT(printed.errors, HasSubstr("2 records considered"));
}

TEST_F(DbCommandsTest, BestExplainsThatThereIsNone) {
  const std::string a = File("a.db", {Good("stale", 2e-3)});
  const std::vector<std::string> command = {
      "best", WriteProgram(), "--target", query_.target.Key(), "--db",
      a,      "--explain"};
  const CommandResult text = Tune(command);
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_THAT(text.output, HasSubstr("stale: made by another compiler"));
  std::vector<std::string> with_json = command;
  with_json.push_back("--json");
  const CommandResult result = Tune(with_json);
  EXPECT_EQ(result.exit_code, 3);
  const Json json = Json::parse(result.output, nullptr, false);
  EXPECT_EQ(json["explanation"]["found"], false);
  EXPECT_EQ(json["explanation"]["records"][0]["fate"], "stale");
  EXPECT_EQ(
      Tune({"best", Path("program.py"), "--db", a, "--db", Path("none.db")})
          .exit_code,
      1);
}

}  // namespace
}  // namespace tilefarm::cli
