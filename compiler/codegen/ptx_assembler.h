// PTX text -> machine code of one GPU (a cubin), by NVIDIA's tools:
//
//   1. ptxas: TILEFARM_PTXAS, or in PATH, or in /usr/local/cuda/bin
//   2. libnvJitLink, opened in this process: TILEFARM_NVJITLINK, or
//      libnvJitLink.so.13 or .so.12 of the loader
//
// A variable that is set names the only file, and one that is empty none.
// Both have the same compiler, but libnvJitLink always compiles for later
// linking (-c), which ignores setmaxnreg (C7504) and allocates other registers.
// ptxas is therefore preferred, and `tool` belongs to what code is cached by.
// The result depends on the text, the architecture and `tool` only.
#ifndef TILEFARM_COMPILER_CODEGEN_PTX_ASSEMBLER_H_
#define TILEFARM_COMPILER_CODEGEN_PTX_ASSEMBLER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::codegen {

struct Assembled {
  struct Kernel {
    std::string name;
    int registers = 0;          // of a thread
    int64_t spill_bytes = 0;    // stored and loaded
    int64_t stack_bytes = 0;    // of a thread
    int64_t static_shared = 0;  // bytes of a block
  };
  std::string cubin;
  std::string log;              // of the compiler, with warnings "(C7510)"
  std::vector<Kernel> kernels;  // in the log's order
  std::string tool;             // "ptxas 13.0.88"
};

enum class PtxTool { kAny, kPtxas, kNvJitLink };

// `architecture`: "sm_90a". NotFound: there is no such tool on this machine.
// Internal: the tool rejected the text, with its log. DeadlineExceeded: ptxas
// took longer than two minutes. Unavailable: no process or no temporary file.
// Thread-safe.
absl::StatusOr<Assembled> AssemblePtx(std::string_view ptx,
                                      std::string_view architecture,
                                      PtxTool tool = PtxTool::kAny);

// Opens libnvJitLink, if it is there, for a process that is about to lose its
// files: from then on kAny means this library. False: there is none, and kAny
// means nothing to such a process.
bool KeepPtxAssembler();

// Reads the kernels from a log of `-v`.
std::vector<Assembled::Kernel> ParseAssemblerLog(std::string_view log);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_PTX_ASSEMBLER_H_
