// Micro-kernels that tensorize puts in place of a matching computation: a
// description (what is matched) and an implementation (what replaces it), both
// programs in our own language with the same parameters, so that lowering
// needs to know nothing about them.
#ifndef TILEFARM_COMPILER_SCHEDULE_TENSOR_INTRIN_H_
#define TILEFARM_COMPILER_SCHEDULE_TENSOR_INTRIN_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {

struct TensorIntrin {
  std::string name;
  // One nest with one block; its body is what tensorize compares.
  ir::PrimFuncPtr description;
  // Any statements on the same parameters that compute the same.
  ir::PrimFuncPtr implementation;
  // What a target must have for the intrinsic to be worth its name, any one of
  // them, by LLVM's names: "avx512vnni". Empty: nothing. The implementation is
  // right everywhere; a trace that names the intrinsic belongs to targets that
  // have the instruction.
  std::vector<std::string> extensions;
  // Registers of the unit that computes it; 0: the target's vector registers.
  int registers = 0;
};

// NotFound, with the names that exist. The result lives for ever.
absl::StatusOr<const TensorIntrin*> FindTensorIntrin(std::string_view name);

// InvalidArgument where the trace tensorizes by an intrinsic that needs what a
// target with these instruction set extensions (target::Target) lacks.
absl::Status CheckExtensions(const Trace& trace,
                             const std::vector<std::string>& extensions);

// All of them, in the order of the list.
const std::vector<TensorIntrin>& TensorIntrins();

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_TENSOR_INTRIN_H_
