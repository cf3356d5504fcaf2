// Records name the compiler of the code they measured: LLVM's version and
// kCodeGenerationEpoch of compiler/driver/compile.cc. This test fails if the
// code of some sample program has changed without a new epoch. golden_code.txt
// has the epoch, LLVM's version and a line for each sample:
//
//   PROGRAM TARGET program=DIGEST llvm=DIGEST optimised=DIGEST
//
// of the program as printed, of the LLVM IR as emitted, and of the IR after
// LLVM's passes. The IR represents lowering, too: a change that does not affect
// it changes no code. Targets are fixed, so the machine that runs the test does
// not matter.
//
// With TILEFARM_RENEW_GOLDEN_CODE=1 in the environment, the test writes a new
// file if that is allowed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "compiler/codegen/codegen.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/lower/pipeline.h"

namespace tilefarm {
namespace {

constexpr char kFile[] = TILEFARM_SOURCE_DIR "/tests/driver/golden_code.txt";

struct Digests {
  std::string program, llvm, optimised;
};
// By "PROGRAM TARGET".
using Samples = std::map<std::string, Digests>;

struct Golden {
  int64_t epoch = 0;
  std::string llvm_version;
  Samples samples;
};

std::string Digest(const std::string& text) {
  return Sha256Hex(text).substr(0, 16);
}

int64_t CurrentEpoch() {
  const std::string fingerprint = driver::Fingerprint();
  int64_t epoch = 0;
  EXPECT_TRUE(absl::SimpleAtoi(fingerprint.substr(fingerprint.rfind("+tf") + 3),
                               &epoch))
      << fingerprint;
  return epoch;
}

Golden ReadGolden() {
  Golden golden;
  std::ifstream file(kFile);
  EXPECT_TRUE(file) << kFile;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[0] == "epoch" && words.size() == 2) {
      EXPECT_TRUE(absl::SimpleAtoi(words[1], &golden.epoch)) << line;
    } else if (words[0] == "llvm" && words.size() == 2) {
      golden.llvm_version = words[1];
    } else if (words.size() >= 2) {
      // A new sample has no digests yet.
      Digests& digests = golden.samples[absl::StrCat(words[0], " ", words[1])];
      for (size_t i = 2; i < words.size(); ++i) {
        const std::vector<std::string> pair = absl::StrSplit(words[i], '=');
        if (pair[0] == "program") digests.program = pair.back();
        if (pair[0] == "llvm") digests.llvm = pair.back();
        if (pair[0] == "optimised") digests.optimised = pair.back();
      }
    } else {
      ADD_FAILURE() << kFile << ": what is '" << line << "'?";
    }
  }
  return golden;
}

absl::StatusOr<Digests> MakeDigests(const std::string& sample) {
  const std::vector<std::string> words = absl::StrSplit(sample, ' ');
  std::ifstream file(absl::StrCat(TILEFARM_SOURCE_DIR, "/tests/", words[0]));
  std::ostringstream text;
  text << file.rdbuf();
  auto module = ir::ParseModule(text.str(), words[0]);
  if (!module.ok()) return module.status();
  auto target = target::Parse(words[1]);
  if (!target.ok()) return target.status();
  std::vector<codegen::LoweredFunction> functions;
  for (const ir::PrimFuncPtr& function : module->functions) {
    auto lowered = lower::Lower(*function, *target);
    if (!lowered.ok()) return lowered.status();
    functions.push_back({*std::move(lowered), "f_" + function->name});
  }
  Digests digests;
  digests.program = Digest(ir::Print(*module));
  for (const bool optimised : {false, true}) {
    auto code = codegen::EmitLlvmIr(functions, {.target = *target}, optimised);
    if (!code.ok()) return code.status();
    (optimised ? digests.optimised : digests.llvm) = Digest(*code);
  }
  return digests;
}

void WriteGolden(const Golden& golden) {
  std::ifstream old(kFile);
  std::string header;
  for (std::string line; std::getline(old, line) && line[0] == '#';) {
    absl::StrAppend(&header, line, "\n");
  }
  old.close();
  std::ofstream file(kFile);
  file << header << "epoch " << golden.epoch << "\nllvm " << golden.llvm_version
       << "\n";
  for (const auto& [sample, digests] : golden.samples) {
    file << sample << " program=" << digests.program << " llvm=" << digests.llvm
         << " optimised=" << digests.optimised << "\n";
  }
  EXPECT_TRUE(file.good());
}

TEST(FingerprintGuard, TheEpochIsRaisedWhenTheCodeChanges) {
  const Golden golden = ReadGolden();
  ASSERT_FALSE(golden.samples.empty());
  Golden now;
  now.epoch = CurrentEpoch();
  now.llvm_version = codegen::LlvmVersion();
  ASSERT_GE(now.epoch, golden.epoch) << "kCodeGenerationEpoch never goes back";
  // Another LLVM version is another fingerprint already.
  const bool same_llvm = now.llvm_version == golden.llvm_version;
  std::string changed;
  bool outdated = now.epoch != golden.epoch;
  for (const auto& [sample, old] : golden.samples) {
    const auto made = MakeDigests(sample);
    ASSERT_TRUE(made.ok()) << sample << ": " << made.status();
    now.samples[sample] = *made;
    if (made->program != old.program) {
      outdated = true;  // another program: its code need not match
    } else if (made->llvm != old.llvm ||
               (same_llvm && made->optimised != old.optimised)) {
      absl::StrAppend(&changed, "  ", sample, "\n");
    }
  }
  if (!changed.empty() && now.epoch == golden.epoch) {
    FAIL() << "The code made for these programs has changed:\n"
           << changed
           << "Records of the old code are no measurements of the new one: "
              "raise kCodeGenerationEpoch\nin compiler/driver/compile.cc to "
           << golden.epoch + 1
           << ", and then run this test with TILEFARM_RENEW_GOLDEN_CODE=1.\n"
              "If no change was meant, look at what changed with: tune-opt "
              "tests/PROGRAM --target TARGET --stage llvm";
  }
  if (std::getenv("TILEFARM_RENEW_GOLDEN_CODE") != nullptr) {
    WriteGolden(now);
    return;
  }
  EXPECT_FALSE(outdated) << "tests/driver/golden_code.txt is of epoch "
                         << golden.epoch
                         << " or of other programs; run this test with "
                            "TILEFARM_RENEW_GOLDEN_CODE=1, and commit the file";
}

}  // namespace
}  // namespace tilefarm
