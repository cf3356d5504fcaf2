// What a mistyped command line is answered.
#include <string>
#include <vector>

#include "base/command_line/parse.h"
#include "base/near_name.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "run"), 3u);
  EXPECT_EQ(EditDistance("run", "run"), 0u);
  EXPECT_EQ(EditDistance("rnu", "run"), 1u);  // neighbours swapped
  EXPECT_EQ(EditDistance("trails", "trials"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  // No character is edited twice: 3, not 2.
  EXPECT_EQ(EditDistance("ca", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", "ca"), 3u);
}

TEST(NearName, IsTheNearestOrNone) {
  const std::vector<std::string> names = {"run", "submit", "watch", "warn"};
  EXPECT_EQ(NearName("rnu", names), "run");
  EXPECT_EQ(NearName("sumbit", names), "submit");
  EXPECT_EQ(NearName("wach", names), "watch");
  EXPECT_EQ(NearName("tune", names), "");
  EXPECT_EQ(NearName("", names), "");
  EXPECT_EQ(NearName("run", {}), "");
  // At once, although it is long.
  EXPECT_EQ(NearName(std::string(10'000'000, 'r'), names), "");
  EXPECT_EQ(SuggestName("rum", names), "; the nearest is 'run'");
  EXPECT_EQ(SuggestName("xyz", names), "");
}

class CommandLine : public testing::Test {
 protected:
  struct Result {
    std::optional<int> code;
    std::string out, err;
  };
  static Result Parse(std::vector<const char*> arguments) {
    CLI::App app("Does things.", "prog");
    app.fallthrough();
    app.require_subcommand(1);
    std::string server, file;
    int trials = 0;
    app.add_option("--server", server);
    auto* run = app.add_subcommand("run", "Run a program");
    run->add_option("file", file)->required();
    run->add_option("--trials", trials);
    auto* db = app.add_subcommand("db", "The database");
    db->require_subcommand(1);
    db->add_subcommand("import", "Read a file");
    db->add_subcommand("export", "Write a file");
    arguments.insert(arguments.begin(), "/usr/bin/prog");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Result result;
    result.code = ParseCommandLine(app, static_cast<int>(arguments.size()),
                                   arguments.data());
    result.out = testing::internal::GetCapturedStdout();
    result.err = testing::internal::GetCapturedStderr();
    return result;
  }
  static void ExpectError(const std::vector<const char*>& arguments,
                          const std::string& message) {
    const Result result = Parse(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.substr(0, result.err.find('\n')), message);
  }
};

TEST_F(CommandLine, GoesOnWhereAllIsKnown) {
  EXPECT_EQ(Parse({"run", "a.py", "--trials", "4"}).code, std::nullopt);
  EXPECT_EQ(Parse({"db", "import", "--server", "x"}).code, std::nullopt);
}

TEST_F(CommandLine, NamesTheNearestCommand) {
  ExpectError({"rnu", "a.py"},
              "prog: there is no command 'rnu'; the nearest is 'run'");
  ExpectError({"db", "imprt"},
              "prog db: there is no command 'imprt'; the nearest is 'import'");
  ExpectError({"frobnicate"}, "prog: there is no command 'frobnicate'");
}

TEST_F(CommandLine, NamesTheNearestOption) {
  ExpectError({"run", "a.py", "--trails", "4"},
              "prog run: there is no option '--trails'; the nearest is "
              "'--trials'");
  ExpectError({"run", "a.py", "--trails=4"},
              "prog run: there is no option '--trails'; the nearest is "
              "'--trials'");
  // Of the program, too.
  ExpectError({"db", "import", "--sever", "x"},
              "prog db import: there is no option '--sever'; the nearest is "
              "'--server'");
  ExpectError({"run", "a.py", "-z"}, "prog run: there is no option '-z'");
}

TEST_F(CommandLine, SaysWhatElseIsWrong) {
  ExpectError({"run", "a.py", "b.py"},
              "prog run: 'b.py' is one argument too many");
  ExpectError({}, "prog: A subcommand is required");
  ExpectError({"run"}, "prog run: file is required");
  EXPECT_THAT(Parse({"run", "a.py", "--trials", "four"}).err,
              StartsWith("prog run: Could not convert: --trials = four"));
  EXPECT_THAT(Parse({"rnu"}).err,
              HasSubstr("(prog --help says what there is)"));
}

TEST_F(CommandLine, HelpIsACommand) {
  const Result whole = Parse({"help"});
  EXPECT_EQ(whole.code, 0);
  EXPECT_THAT(whole.out, HasSubstr("Does things."));
  EXPECT_EQ(whole.err, "");
  const Result part = Parse({"help", "db", "import"});
  EXPECT_EQ(part.code, 0);
  EXPECT_THAT(part.out, HasSubstr("Usage: prog db import"));
  EXPECT_EQ(Parse({"--help"}).code, 0);
  ExpectError({"help", "rnu"},
              "prog: there is no command 'rnu'; the nearest is 'run'");
}

}  // namespace
}  // namespace tilefarm
