#include "compiler/driver/run_function.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"

namespace tilefarm::driver {
namespace {

constexpr size_t kMostParameters = 64;
constexpr char kSymbol[] = "explained";
// Large buffers are in huge pages, as tuning has them.
constexpr size_t kHugePage = size_t{2} << 20;
// Less cannot be timed well.
constexpr absl::Duration kShortestSample = absl::Microseconds(50);
constexpr size_t kFewestSamples = 5;

template <size_t... I>
int CallWith(void* function, void* const* args, std::index_sequence<I...>) {
  using Function = int (*)(decltype(static_cast<void>(I), (void*)nullptr)...);
  return reinterpret_cast<Function>(function)(args[I]...);
}

// Further arguments than the function's are harmless: the caller removes them.
int Call(void* function, void* const* args, size_t count) {
  if (count <= 6) {
    return CallWith(function, args, std::make_index_sequence<6>());
  }
  return CallWith(function, args, std::make_index_sequence<kMostParameters>());
}

// 16-bit floats of 1, and others between 1/2 and 1.
void Fill(ir::DataType dtype, char* memory, size_t bytes) {
  if (!dtype.is_float()) return;  // zeros
  Rng rng(1);
  const auto elements = bytes / static_cast<size_t>(dtype.bytes());
  for (size_t i = 0; i < elements; ++i) {
    if (dtype.bits == 32) {
      const auto value = static_cast<float>(0.5 + rng.Uniform() / 2);
      std::memcpy(memory + i * sizeof value, &value, sizeof value);
    } else if (dtype.bits == 64) {
      const double value = 0.5 + rng.Uniform() / 2;
      std::memcpy(memory + i * sizeof value, &value, sizeof value);
    } else {
      const uint16_t one = dtype == ir::DataType::BFloat16() ? 0x3f80 : 0x3c00;
      std::memcpy(memory + i * sizeof one, &one, sizeof one);
    }
  }
}

// From the pointer to the last element's end, with strides and offset.
size_t BytesOf(const ir::BufferNode& buffer) {
  int64_t last = buffer.elem_offset;
  int64_t dense = 1;
  for (size_t i = buffer.shape.size(); i-- > 0;) {
    last += (buffer.shape[i] - 1) *
            (buffer.strides.empty() ? dense : buffer.strides[i]);
    dense *= buffer.shape[i];
  }
  return static_cast<size_t>((last + 1) * buffer.dtype.bytes());
}

}  // namespace

void RunnableFunction::Free::operator()(void* memory) const {
  std::free(memory);
}

absl::StatusOr<RunnableFunction::Memory> RunnableFunction::Allocate(
    size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const size_t size = (bytes + alignment - 1) / alignment * alignment;
  Memory memory(std::aligned_alloc(alignment, size));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a buffer of ", bytes, " bytes"));
  }
  if (alignment == kHugePage) madvise(memory.get(), size, MADV_HUGEPAGE);
  std::memset(memory.get(), 0, size);
  return memory;
}

absl::StatusOr<RunnableFunction> RunnableFunction::Make(
    const ir::PrimFunc& scheduled, const target::Target& target) {
  if (target.is_gpu()) {
    return absl::InvalidArgumentError(
        "functions of GPUs are not run in this process");
  }
  if (scheduled.params.size() > kMostParameters) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the function has ", scheduled.params.size(), " parameters; at most ",
        kMostParameters, " are supported here"));
  }
  RunnableFunction result;
  TF_ASSIGN_OR_RETURN(
      const Artifact artifact,
      Compile(ir::IRModule{{std::make_shared<const ir::PrimFunc>(scheduled)}},
              {.target = target, .symbol = kSymbol}));
  TF_ASSIGN_OR_RETURN(result.library_,
                      LoadedLibrary::Load(artifact.shared_object));
  result.function_ = result.library_.Find(kSymbol);
  if (result.function_ == nullptr) {
    return absl::InternalError("the library lacks its function");
  }
  for (const ir::Buffer& parameter : scheduled.params) {
    const size_t bytes = BytesOf(*parameter);
    TF_ASSIGN_OR_RETURN(Memory memory, Allocate(bytes));
    Fill(parameter->dtype, static_cast<char*>(memory.get()), bytes);
    result.arguments_.push_back(memory.get());
    result.memory_.push_back(std::move(memory));
  }
  result.parameters_ = result.arguments_.size();
  result.arguments_.resize(kMostParameters, nullptr);
  TF_RETURN_IF_ERROR(result.Pack(artifact.packed_parameters.at(0)));
  return result;
}

absl::Status RunnableFunction::Pack(const std::vector<int>& parameters) {
  if (parameters.empty()) return absl::OkStatus();
  const std::string symbol = kSymbol;
  const auto bytes = reinterpret_cast<size_t (*)(int)>(
      library_.Find(symbol + "_packed_bytes"));
  const auto pack = reinterpret_cast<int (*)(int, const void*, void*)>(
      library_.Find(symbol + "_pack"));
  void* packed_function = library_.Find(symbol + "_packed");
  if (bytes == nullptr || pack == nullptr || packed_function == nullptr) {
    return absl::InternalError("the library lacks its packing functions");
  }
  for (const int parameter : parameters) {
    TF_ASSIGN_OR_RETURN(Memory packed, Allocate(bytes(parameter)));
    void*& argument = arguments_[static_cast<size_t>(parameter)];
    if (pack(parameter, argument, packed.get()) != 0) {
      return absl::InternalError(
          absl::StrCat("parameter ", parameter, " could not be packed"));
    }
    argument = packed.get();
    memory_.push_back(std::move(packed));
  }
  function_ = packed_function;
  return absl::OkStatus();
}

absl::Status RunnableFunction::Run() {
  const int status = Call(function_, arguments_.data(), parameters_);
  if (status == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the function returned ", status));
}

absl::StatusOr<MedianInterval> TimeFunction(RunnableFunction& function,
                                            absl::Duration budget,
                                            Clock& clock) {
  const auto time = [&](int runs) -> absl::StatusOr<absl::Duration> {
    const absl::Duration start = clock.Monotonic();
    for (int i = 0; i < runs; ++i) TF_RETURN_IF_ERROR(function.Run());
    return clock.Monotonic() - start;
  };
  TF_RETURN_IF_ERROR(time(1).status());
  TF_ASSIGN_OR_RETURN(const absl::Duration one, time(1));
  const double runs_needed =
      absl::FDivDuration(kShortestSample, std::max(one, absl::Nanoseconds(1)));
  const int runs = static_cast<int>(std::clamp(runs_needed, 1.0, 1e5));
  std::vector<double> samples;
  const absl::Duration start = clock.Monotonic();
  while (samples.size() < kFewestSamples ||
         clock.Monotonic() - start < budget) {
    TF_ASSIGN_OR_RETURN(const absl::Duration sample, time(runs));
    samples.push_back(absl::ToDoubleSeconds(sample) / runs);
  }
  return MedianOf(std::move(samples));
}

}  // namespace tilefarm::driver
