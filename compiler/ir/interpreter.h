// The reference semantics of a program, executed one element at a time. Slow;
// tests compare with it.
#ifndef TILEFARM_COMPILER_IR_INTERPRETER_H_
#define TILEFARM_COMPILER_IR_INTERPRETER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

struct InterpretOptions {
  // Bounds the number of statements executed (ResourceExhausted).
  int64_t max_steps = int64_t{1} << 32;
  // A read of an element of workspace that nothing has written is
  // FailedPrecondition with buffer, element and block. Otherwise it gives NaN
  // for floats and bytes of 0x7f for others.
  bool refuse_unwritten = false;
  // Parallel and vectorized loops, and those over the blocks of a GPU, run from
  // the last iteration to the first. A program whose results depend on it has
  // iterations that are not independent.
  bool reverse_concurrent_loops = false;
};

// Runs `function` (scheduled or not; loops of every kind run serially) on raw
// dense row-major buffers in parameter order, in place. float16 and bfloat16
// compute in float32 and round at stores and casts. An access out of bounds is
// OutOfRange with buffer, index and block. A buffer of the wrong size is
// InvalidArgument.
absl::Status Interpret(const PrimFunc& function,
                       std::span<const std::span<std::byte>> buffers,
                       const InterpretOptions& options = {});

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_INTERPRETER_H_
