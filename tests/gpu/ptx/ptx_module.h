// PTX text -> instructions that a PtxMachine executes. For tests: what NVIDIA's
// manual says ("Parallel Thread Execution ISA", 8.5), of what our back end
// prints, written without its code.
//
// A warp's registers are one array of bytes, its file. A register has the
// values of all 32 lanes next to each other, so that an instruction is a loop
// over lanes. Constants, addresses of memory and special registers that do not
// change are registers too, filled before the first instruction.
#ifndef TILEFARM_TESTS_GPU_PTX_PTX_MODULE_H_
#define TILEFARM_TESTS_GPU_PTX_PTX_MODULE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tilefarm::ptx {

inline constexpr int kWarpLanes = 32;

class Warp;
struct Instruction;

// Executes an instruction for the lanes in `mask`.
using Operation = void (*)(Warp& warp, const Instruction& instruction,
                           uint32_t mask);

enum class Control : uint8_t {
  kNext,
  kBranch,
  kReturn,
  kTrap,
  kWarpWide,   // executed when all lanes of the warp have come to it
  kMembers,    // when the lanes that it names have
  kBarrier,    // "bar.sync"
  kWaitPhase,  // "mbarrier.try_wait"
  // "barrier.cluster"; more[0]: aligned.
  kArriveCluster,
  kWaitCluster,
};

struct Instruction {
  Control control = Control::kNext;
  Operation run = nullptr;
  int64_t guard = -1;  // a predicate's place in the file; -1: none
  bool negated = false;
  int target = 0;              // of a branch: index of an instruction
  std::vector<uint32_t> args;  // places in the file, results first
  std::vector<int64_t> more;   // numbers; their meaning is the operation's
  std::string_view text;       // in PtxModule's copy
};

// A register that has its value before the first instruction.
struct Preset {
  enum class Kind : uint8_t { kConstant, kThread, kLane, kParameter };
  Kind kind = Kind::kConstant;
  int width = 4;       // bytes of one lane
  uint64_t value = 0;  // a constant; otherwise an offset, of kThread an index
  uint32_t place = 0;
};

struct Parameter {
  std::string name;
  int bytes = 8;
  int offset = 0;  // in the memory of parameters
};

struct Kernel {
  std::string name;
  std::vector<Parameter> parameters;
  int parameter_bytes = 0;
  int local_bytes = 0;  // of one thread
  uint32_t file_bytes = 0;
  std::vector<Preset> presets;
  std::vector<Instruction> code;
  const std::vector<unsigned char>* constants = nullptr;  // the module's
  int most_threads = 0;  // of a block, ".maxntid"; 0: not said
  unsigned cluster = 0;  // blocks along x, ".reqnctapercluster"; 0: not said
  bool needs_cluster = false;  // ".explicitcluster"
};

// The first byte of shared memory: the driver keeps what is below. And those of
// a thread's local memory, and of constants.
inline constexpr uint32_t kSharedBase = 1024;
inline constexpr uint32_t kLocalBase = 4096;
inline constexpr uint32_t kConstantBase = 8192;

// Shared memory of the blocks of a cluster ("shared::cluster"): the number of
// the block in the cluster + 1 stands above these bits; 0: the own block.
inline constexpr int kRankShift = 24;
inline constexpr unsigned kMostBlocksOfCluster = 16;
// Generic addresses of it have this added. Addresses of this process are below
// the second one.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 60;
inline constexpr uint64_t kProcessEnd = uint64_t{1} << 56;

class Module {
 public:
  // Null with `error`: "line 12: unsupported instruction: wgmma.sp".
  static std::unique_ptr<Module> Parse(std::string_view text,
                                       std::string* error);
  const Kernel* Find(const std::string& name) const {
    const auto found = kernels_.find(name);
    return found == kernels_.end() ? nullptr : &found->second;
  }

 private:
  friend class Parser;
  std::string text_;
  std::vector<unsigned char> constants_;
  std::map<std::string, Kernel> kernels_;
};

}  // namespace tilefarm::ptx

#endif  // TILEFARM_TESTS_GPU_PTX_PTX_MODULE_H_
