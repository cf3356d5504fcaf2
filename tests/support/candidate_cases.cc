#include "tests/support/candidate_cases.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/status_macros.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/space/design_space.h"

namespace tilefarm::testing {

std::vector<std::byte> WholeNumbers(const ir::BufferNode& buffer, Rng& rng) {
  // 1, -1, 2, -2, 0
  constexpr uint16_t kHalves[] = {0x3c00, 0xbc00, 0x4000, 0xc000, 0};
  std::vector<std::byte> data;
  const auto width = static_cast<size_t>(buffer.dtype.bytes());
  for (int64_t i = 0; i < buffer.num_elements(); ++i) {
    uint64_t bits = rng.Next();
    const auto value = static_cast<float>(rng.Between(-8, 8));
    if (buffer.dtype == ir::DataType::BFloat16()) {
      bits = std::bit_cast<uint32_t>(value) >> 16;
    } else if (buffer.dtype.is_float() && width == 2) {
      bits = kHalves[static_cast<uint32_t>(bits) % 5];
    } else if (buffer.dtype.is_float() && width == 8) {
      bits = std::bit_cast<uint64_t>(static_cast<double>(value));
    } else if (buffer.dtype.is_float()) {
      bits = std::bit_cast<uint32_t>(value);
    }
    std::byte bytes[8];
    std::memcpy(bytes, &bits, 8);
    data.insert(data.end(), bytes, bytes + width);
  }
  return data;
}

absl::StatusOr<CandidateCase> MakeCandidateCase(const std::string& text,
                                                Rng& rng) {
  CandidateCase made;
  TF_ASSIGN_OR_RETURN(made.function, ir::ParseFunction(text, "main.py"));
  for (const ir::Buffer& param : made.function->params) {
    made.inputs.push_back(WholeNumbers(*param, rng));
  }
  made.expected = made.inputs;
  const std::vector<std::span<std::byte>> views(made.expected.begin(),
                                                made.expected.end());
  TF_RETURN_IF_ERROR(ir::Interpret(*made.function, views));
  return made;
}

absl::StatusOr<int> ForEachCandidate(
    const ir::PrimFuncPtr& function, const std::string& target, int count,
    Rng& rng,
    const std::function<absl::Status(const schedule::Schedule&)>& check) {
  TF_ASSIGN_OR_RETURN(const target::Target parsed, target::Parse(target));
  TF_ASSIGN_OR_RETURN(const auto space,
                      space::DesignSpace::Create(function, parsed));
  int legal = 0;
  for (int i = 0; i < count; ++i) {
    TF_ASSIGN_OR_RETURN(const space::Candidate candidate, space->Sample(rng));
    const auto scheduled = space->Apply(candidate);
    if (!scheduled.ok()) continue;
    ++legal;
    TF_RETURN_IF_ERROR(check(*scheduled));
  }
  return legal;
}

}  // namespace tilefarm::testing
