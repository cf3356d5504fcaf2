#include "server/jobs/similar_tasks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text_kind.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"

namespace tilefarm::jobs {
namespace {

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += std::abs(std::log1p(a[i]) - std::log1p(b[i]));
  }
  return sum;
}

// The nests below the root that reduce.
std::string ReducingNests(std::string_view text) {
  std::string nests, nest;
  const auto end_nest = [&] {
    if (absl::StrContains(nest, "with T.init():")) nests += nest;
    nest.clear();
  };
  bool below_root = false;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(std::string(text), '\n'))) {
    if (line.starts_with("    for ") || line.starts_with("    with ")) {
      end_nest();
      below_root = true;
    }
    if (below_root) absl::StrAppend(&nest, line, "\n");
  }
  end_nest();
  return nests;
}

// The names of a canonical text (b3, v12, block1) by their order in this part
// of it.
std::string Renamed(std::string_view text) {
  std::string renamed;
  std::map<std::string, size_t, std::less<>> numbers;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() &&
           (absl::ascii_isalnum(text[end]) || text[end] == '_')) {
      ++end;
    }
    if (end == i) {
      renamed.push_back(text[i++]);
      continue;
    }
    const std::string_view word = text.substr(i, end - i);
    const std::string_view letters =
        word.substr(0, word.find_first_of("0123456789"));
    i = end;
    if (letters.size() == word.size() ||
        (letters != "b" && letters != "v" && letters != "block")) {
      renamed += word;
      continue;
    }
    const size_t number = numbers.emplace(word, numbers.size()).first->second;
    absl::StrAppend(&renamed, std::string(letters), number);
  }
  return renamed;
}

ProgramKind KindOfText(std::string_view canonical) {
  ProgramKind kind;
  kind.whole = WithoutNumbers(canonical);
  const std::string nests = Renamed(ReducingNests(canonical));
  kind.text = nests.empty() ? kind.whole : WithoutNumbers(nests);
  kind.numbers = NumbersOf(nests.empty() ? canonical : nests);
  return kind;
}

}  // namespace

ProgramKind KindOf(const ir::PrimFunc& function) {
  return KindOfText(ir::Print(*ir::Canonicalize(function)));
}

absl::StatusOr<SimilarTasks> SimilarTasks::Read(
    const database::Store& store, const std::string& target_key,
    const std::vector<const ProgramKind*>& kinds) {
  SimilarTasks similar;
  for (const ProgramKind* kind : kinds) similar.by_kind_[kind->text];
  TF_RETURN_IF_ERROR(store.ForEachWorkload(
      target_key, [&](const std::string& hash, const std::string& canonical) {
        ProgramKind kind = KindOfText(canonical);
        const auto found = similar.by_kind_.find(kind.text);
        if (found != similar.by_kind_.end()) {
          found->second.push_back({hash, std::move(kind)});
        }
        return true;
      }));
  return similar;
}

std::vector<std::string> SimilarTasks::Find(const ProgramKind& kind,
                                            const std::string& workload_hash,
                                            size_t most) const {
  const auto found = by_kind_.find(kind.text);
  if (found == by_kind_.end()) return {};
  std::vector<std::tuple<bool, double, std::string>> near;
  for (const Workload& one : found->second) {
    if (one.hash == workload_hash) continue;
    near.emplace_back(one.kind.whole != kind.whole,
                      Distance(one.kind.numbers, kind.numbers), one.hash);
  }
  std::ranges::sort(near);
  std::vector<std::string> hashes;
  for (size_t i = 0; i < near.size() && i < most; ++i) {
    hashes.push_back(std::get<std::string>(std::move(near[i])));
  }
  return hashes;
}

}  // namespace tilefarm::jobs
