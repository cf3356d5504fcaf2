#include "server/jobs/similar_tasks.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

}  // namespace

ProgramKind KindOf(const ir::PrimFunc& function) {
  const std::string text = ir::Print(*ir::Canonicalize(function));
  return {.text = WithoutNumbers(text), .numbers = NumbersOf(text)};
}

absl::StatusOr<SimilarTasks> SimilarTasks::Read(
    const database::Store& store, const std::string& target_key,
    const std::vector<const ProgramKind*>& kinds) {
  SimilarTasks similar;
  for (const ProgramKind* kind : kinds) similar.by_kind_[kind->text];
  TF_RETURN_IF_ERROR(store.ForEachWorkload(
      target_key, [&](const std::string& hash, const std::string& canonical) {
        const auto found = similar.by_kind_.find(WithoutNumbers(canonical));
        if (found != similar.by_kind_.end()) {
          found->second.push_back({hash, NumbersOf(canonical)});
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
  std::vector<std::pair<double, std::string>> near;
  for (const Workload& one : found->second) {
    if (one.hash == workload_hash) continue;
    near.emplace_back(Distance(one.numbers, kind.numbers), one.hash);
  }
  std::ranges::sort(near);
  std::vector<std::string> hashes;
  for (size_t i = 0; i < near.size() && i < most; ++i) {
    hashes.push_back(std::move(near[i].second));
  }
  return hashes;
}

}  // namespace tilefarm::jobs
