// Size limits of programs, shared by parser, server and import.
#ifndef TILEFARM_COMPILER_IR_LIMITS_H_
#define TILEFARM_COMPILER_IR_LIMITS_H_

#include <cstdint>

namespace tilefarm::ir {

struct Limits {
  int64_t max_text_bytes = 4 << 20;
  int max_nesting = 200;     // parentheses, statements, expressions
  int max_loops = 4096;      // in one function
  int max_functions = 1024;  // in one module
  int max_dims = 16;         // of a buffer
  int max_nodes = 1 << 20;   // expression and statement nodes
  int64_t max_extent = int64_t{1} << 40;  // of one loop or block variable
  int64_t max_buffer_bytes = int64_t{16} << 30;
  int64_t max_total_bytes = int64_t{64} << 30;  // all buffers of a function
};

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_LIMITS_H_
