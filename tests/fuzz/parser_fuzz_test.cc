// Seeded mutations of real programs, by bytes, by tokens and by lines. Runs
// for TILEFARM_FUZZ_SECONDS (default 10) from TILEFARM_FUZZ_SEED.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "base/rng.h"
#include "tests/fuzz/check_program.h"
#include "tests/fuzz/corpus.h"

namespace tilefarm::fuzz {
namespace {

int64_t FromEnvironment(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::atoll(text);
}

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// Words, single symbols and runs of spaces, which together are the text.
std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (IsWord(text[i])) {
      while (end < text.size() && IsWord(text[end])) ++end;
    } else if (text[i] == ' ') {
      while (end < text.size() && text[end] == ' ') ++end;
    }
    out.push_back(text.substr(i, end - i));
    i = end;
  }
  return out;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> out(1);
  for (char c : text) {
    out.back() += c;
    if (c == '\n') out.emplace_back();
  }
  return out;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : rng_(seed), corpus_(Corpus()) {}

  std::string Next() {
    std::string text = corpus_[rng_.Below(corpus_.size())];
    const int64_t changes = rng_.Chance(0.5) ? 1 : rng_.Between(2, 6);
    for (int64_t i = 0; i < changes; ++i) text = Mutate(text);
    return text;
  }

 private:
  std::string Mutate(const std::string& text) {
    if (text.empty()) return Pick(Vocabulary());
    if (rng_.Chance(0.2)) return MutateBytes(text);
    const bool lines = rng_.Chance(0.2);
    std::vector<std::string> parts = lines ? Lines(text) : Split(text);
    const size_t at = rng_.Below(parts.size());
    const size_t other = rng_.Below(parts.size());
    switch (rng_.Below(6)) {
      case 0:
        parts.erase(parts.begin() + static_cast<long>(at));
        break;
      case 1:
        parts.insert(parts.begin() + static_cast<long>(at), parts[other]);
        break;
      case 2:
        std::swap(parts[at], parts[other]);
        break;
      case 3:
        parts[at] = parts[other];
        break;
      case 4:
        if (lines) {
          parts[at] = std::string(rng_.Below(12), ' ') + parts[at];
        } else {
          parts[at] = Pick(Vocabulary());
        }
        break;
      default: {
        // Insert a piece of another program.
        const std::string& donor = corpus_[rng_.Below(corpus_.size())];
        const std::vector<std::string> pieces =
            lines ? Lines(donor) : Split(donor);
        parts[at] = pieces[rng_.Below(pieces.size())];
      }
    }
    return Join(parts);
  }

  std::string MutateBytes(std::string text) {
    const size_t at = rng_.Below(text.size());
    switch (rng_.Below(4)) {
      case 0:
        text[at] = static_cast<char>(rng_.Below(256));
        break;
      case 1:
        text.resize(at);
        break;
      case 2: {
        // Insert many copies of a piece: nesting, length.
        const size_t length = rng_.Below(8) + 1;
        const std::string piece = text.substr(at, length);
        const uint64_t copies = rng_.Below(rng_.Chance(0.1) ? 4000 : 20);
        std::string repeated;
        for (uint64_t i = 0; i < copies; ++i) repeated += piece;
        text.insert(at, repeated);
        break;
      }
      default:
        text.erase(at, rng_.Below(40));
    }
    return text;
  }

  const std::string& Pick(const std::vector<std::string>& items) {
    return items[rng_.Below(items.size())];
  }

  Rng rng_;
  const std::vector<std::string> corpus_;
};

TEST(ParserFuzz, TheCorpusIsAccepted) {
  for (const std::string& text : Corpus()) {
    const Outcome outcome = CheckProgram(text);
    EXPECT_TRUE(outcome.accepted) << text;
    EXPECT_EQ(outcome.violation, "") << text;
  }
}

TEST(ParserFuzz, MutatedProgramsNeverBreakIt) {
  const auto seed =
      static_cast<uint64_t>(FromEnvironment("TILEFARM_FUZZ_SEED", 20240229));
  const std::chrono::seconds budget(
      FromEnvironment("TILEFARM_FUZZ_SECONDS", 10));
  std::cout << "seed " << seed << "\n";
  Mutator mutator(seed);
  const auto end = std::chrono::steady_clock::now() + budget;
  int64_t runs = 0;
  int64_t accepted = 0;
  while (std::chrono::steady_clock::now() < end) {
    const std::string text = mutator.Next();
    const Outcome outcome = CheckProgram(text);
    ++runs;
    accepted += outcome.accepted;
    ASSERT_EQ(outcome.violation, "")
        << "seed " << seed << ", run " << runs << ":\n"
        << text;
  }
  std::cout << runs << " programs, " << accepted << " accepted\n";
  EXPECT_GT(runs, 0);
}

}  // namespace
}  // namespace tilefarm::fuzz
