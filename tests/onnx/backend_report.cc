// Runs ONNX's backend tests and prints a table by operator.
//
//   onnx_backend_report DIR [--compiled] [--only TEXT] [--failures |
//   --markdown]
//
// DIR has one directory per case. --compiled runs generated code instead of the
// interpreter; --only takes the cases whose name contains TEXT; --failures
// prints the cases that did not pass, with the reason; --markdown prints
// docs/onnx-coverage.md. The exit code is 1 if a case failed (unsupported ones
// do not count).
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/onnx/backend_cases.h"

namespace {

using tilefarm::testing::CaseMode;
using tilefarm::testing::CaseOutcome;
using tilefarm::testing::CaseResult;

struct Counts {
  int passed = 0, unsupported = 0, failed = 0;

  void Add(CaseResult result) {
    passed += result == CaseResult::kPassed;
    unsupported += result == CaseResult::kUnsupported;
    failed += result == CaseResult::kFailed;
  }
  std::string ToString() const {
    return absl::StrCat(passed + unsupported + failed, " cases: ", passed,
                        " pass, ", unsupported, " unsupported, ", failed,
                        " fail");
  }
};

constexpr char kIntroduction[] =
    R"(# Coverage of ONNX operators

ONNX comes with a test for every operator: a model of one or a few nodes, inputs
and the expected outputs. This table says how Tilefarm does on those of
onnx 1.23.2. A case

- **passes** if the model is imported and all outputs are right: floats within
  1e-7 + 0.001 of the expected value's size (the rule of ONNX's own runner), all
  other types exactly;
- is **unsupported** if the import ends with a message that names the operator,
  the node and what is missing;
- **fails** otherwise: a wrong result, or any other error.

Inputs of the model stay inputs of the program. An operator whose attributes are
inputs in newer operator sets (`axes`, `shape`) needs them to be constants, so a
case in which they decide a shape is unsupported if the model gives them as
inputs. Open dimensions get the sizes of the test's data.

A case counts for each operator in its model. The names of custom operators have
their domain in front. Every case runs in the interpreter, call by call.

## How to make this document

    pip install onnx==1.23.2
    tests/onnx/write_node_tests.py DIR
    onnx_backend_report DIR --markdown > docs/onnx-coverage.md

`onnx_backend_report DIR --compiled` prints the same table for compiled
models: with fusion and memory planning, the default schedules and generated
code. `onnx_backend_test` runs the older cases that Debian packages
(libonnx-testdata): all in the interpreter, a third compiled.
)";

// The reasons of an outcome without names of nodes and values.
std::set<std::string> Reasons(const CaseOutcome& outcome) {
  static const auto* const names = new std::regex(
      " \\(node [^)]*\\)| '[^']*'|( |^)input_[0-9]+\\.pb|"
      "\\([^() ]*_[^() ]*\\) ");
  std::set<std::string> reasons;
  for (absl::string_view line : absl::StrSplit(outcome.reason, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line == "the model needs what is not supported:") {
      continue;
    }
    reasons.insert(std::string(absl::StripAsciiWhitespace(
        std::regex_replace(std::string(line), *names, ""))));
  }
  return reasons;
}

void PrintTable(const std::map<std::string, Counts>& by_operator) {
  std::printf("| operator | pass | unsupported | fail |\n|---|--:|--:|--:|\n");
  for (const auto& [op, counts] : by_operator) {
    std::printf("| %s | %d | %d | %d |\n", op.c_str(), counts.passed,
                counts.unsupported, counts.failed);
  }
}

void PrintMarkdown(const std::map<std::string, Counts>& by_operator,
                   const std::map<std::string, std::set<std::string>>& reasons,
                   const std::vector<std::string>& failed, const Counts& all) {
  int whole = 0;
  for (const auto& [op, counts] : by_operator) {
    whole += counts.unsupported + counts.failed == 0;
  }
  std::printf(
      "%s\n## Operators\n\n%s.\nOf %zu operators, %d pass every case.\n\n",
      kIntroduction, all.ToString().c_str(), by_operator.size(), whole);
  PrintTable(by_operator);
  std::printf(
      "\n## What is not supported\n\nA case may have several reasons. The last "
      "column names up to three cases.\n\n| reason | cases | such as |\n"
      "|---|--:|---|\n");
  // The most frequent reasons first.
  std::vector<std::pair<std::string, std::set<std::string>>> sorted(
      reasons.begin(), reasons.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) {
                     return a.second.size() > b.second.size();
                   });
  for (const auto& [reason, cases] : sorted) {
    std::vector<std::string> some(cases.begin(), cases.end());
    if (some.size() > 3) some.resize(3);
    std::printf("| %s | %zu | %s |\n", reason.c_str(), cases.size(),
                absl::StrJoin(some, ", ").c_str());
  }
  if (failed.empty()) return;
  std::printf(
      "\n## What fails\n\nThe expected output of `test_dft_inverse` has the "
      "rounding errors of a\ntransform in single precision where the exact "
      "value is 0. Tilefarm's error is\nsmaller. ONNX's attention in types "
      "of 16 bits rounds each intermediate result;\nTilefarm computes in "
      "float32 and rounds once. They differ by one or two units in "
      "the last place,\nwhich is more than the rule allows.\n\n");
  for (const std::string& line : failed) std::printf("- %s\n", line.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string root, only;
  bool failures = false, markdown = false;
  CaseMode mode = CaseMode::kInterpreted;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--failures") {
      failures = true;
    } else if (argument == "--markdown") {
      markdown = true;
    } else if (argument == "--compiled") {
      mode = CaseMode::kCompiled;
    } else if (argument == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else {
      root = argument;
    }
  }
  if (!std::filesystem::is_directory(root)) {
    std::fprintf(stderr,
                 "usage: %s DIR [--compiled] [--only TEXT] [--failures | "
                 "--markdown]\n",
                 argv[0]);
    return 2;
  }
  std::map<std::string, Counts> by_operator;
  std::map<std::string, std::set<std::string>> unsupported;
  std::vector<std::string> failed;
  Counts all;
  for (const std::string& name : tilefarm::testing::CaseNames(root)) {
    if (name.find(only) == std::string::npos) continue;
    const CaseOutcome outcome =
        tilefarm::testing::RunBackendCase(root + "/" + name, mode);
    all.Add(outcome.result);
    for (const std::string& op : outcome.operators) {
      by_operator[op].Add(outcome.result);
    }
    if (outcome.result == CaseResult::kPassed) continue;
    const bool is_failure = outcome.result == CaseResult::kFailed;
    if (failures) {
      std::printf("%s %s: %s\n", is_failure ? "FAILED" : "unsupported",
                  name.c_str(), outcome.reason.c_str());
      std::fflush(stdout);
    }
    if (is_failure) {
      failed.push_back(absl::StrCat(name, ": ", outcome.reason));
      continue;
    }
    for (const std::string& reason : Reasons(outcome)) {
      unsupported[reason].insert(name);
    }
  }
  if (markdown) {
    PrintMarkdown(by_operator, unsupported, failed, all);
  } else {
    if (!failures) PrintTable(by_operator);
    std::printf("%s\n", all.ToString().c_str());
  }
  return all.failed > 0 ? 1 : 0;
}
