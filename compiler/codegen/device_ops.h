// What the code of one thread of a GPU needs besides arithmetic and memory: the
// interface under the emitter of kernels. Private: has LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_DEVICE_OPS_H_
#define TILEFARM_COMPILER_CODEGEN_DEVICE_OPS_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/warpgroup_ops.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/lower/gpu_passes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tilefarm::codegen {

// Whether kernels wait for the one before them by themselves: on Hopper and
// later (runtime/cuda_launch.h).
inline bool OverlapsKernels(const target::GpuLimits& limits) {
  return limits.architecture >= 90;
}

// The emitter calls Begin first, then the others at its insertion point.
class DeviceOps {
 public:
  // The parameters of a kernel as the code sees them.
  struct Function {
    llvm::Function* function = nullptr;
    std::vector<llvm::Value*> buffers;  // as Kernel::buffers
    std::vector<llvm::Value*> maps;     // as Kernel::maps
    llvm::Value* shared = nullptr;      // of shared memory; null: none
  };

  virtual ~DeviceOps() = default;
  // Creates the function with an entry block, where the builder then is.
  virtual Function Begin(const lower::Kernel& kernel, const std::string& name,
                         llvm::IRBuilder<>& builder) = 0;
  // The number of this thread or block along the axis: i32 below its extent.
  virtual llvm::Value* Index(const lower::KernelAxis& axis,
                             llvm::IRBuilder<>& builder) = 0;
  virtual void Barrier(llvm::IRBuilder<>& builder) = 0;
  virtual void ClusterBarrier(llvm::IRBuilder<>& builder) = 0;
  // Where the block of this number (i32) in the cluster has what this one has
  // at an address of shared memory. For loads alone.
  virtual llvm::Value* ClusterAddress(llvm::Value* shared, llvm::Value* rank,
                                      llvm::IRBuilder<>& builder) = 0;
  // Starts a copy of 4, 8 or 16 bytes, aligned to them, to shared memory; of
  // zeros where `condition` (i1; null: none) does not hold, when `from` may be
  // any address. False, without code, if the device has no such copies.
  virtual bool CopyAsync(llvm::Value* to, llvm::Value* from, int bytes,
                         llvm::Value* condition,
                         llvm::IRBuilder<>& builder) = 0;
  virtual void Commit(llvm::IRBuilder<>& builder) = 0;
  virtual void Wait(int groups, llvm::IRBuilder<>& builder) = 0;
  // e^x and 2^x of float32, a scalar or vector, within 2 units in the last
  // place; null, without code: the device has no instruction for it. Powers
  // 2^x that are subnormal may be 0.
  virtual llvm::Value* Exp(llvm::Value* x, llvm::IRBuilder<>& builder) {
    (void)x, (void)builder;
    return nullptr;
  }
  virtual llvm::Value* Exp2(llvm::Value* x, llvm::IRBuilder<>& builder) {
    (void)x, (void)builder;
    return nullptr;
  }
  // Whether the larger or smaller of two float32, NaN if either is, is one
  // instruction.
  virtual bool HasExtremes() const { return false; }
  // Whether what a thread may not load is loaded from elsewhere, instead of a
  // branch around it: loads behind one another then wait together.
  virtual bool LoadsWithoutBranches() const { return false; }
  // Called for each access of so many bytes of shared memory, for devices that
  // look for races.
  virtual void NoteAccess(llvm::Value* address, int bytes, bool write,
                          llvm::IRBuilder<>& builder) {
    (void)address, (void)bytes, (void)write, (void)builder;
  }
  // Likewise of each load from an address that ClusterAddress gave.
  virtual void NoteClusterRead(llvm::Value* address, int bytes,
                               llvm::IRBuilder<>& builder) {
    (void)address, (void)bytes, (void)builder;
  }
  // An i32 of the thread of the group whose number is this one's ^ mask.
  virtual llvm::Value* ShuffleXor(llvm::Value* value, int mask, int width,
                                  llvm::IRBuilder<>& builder) = 0;
  // ir::MachineOp::kLoadMatrix of this lane's row: i32s, a vector if there are
  // several matrices.
  virtual llvm::Value* LoadMatrix(llvm::Value* row, int matrices,
                                  bool transposed,
                                  llvm::IRBuilder<>& builder) = 0;
  // ir::MachineOp::kWarpProduct: `a` and `b` are vectors of i32, the result has
  // the type of `sums`.
  virtual llvm::Value* WarpProduct(int unit, llvm::Value* a, llvm::Value* b,
                                   llvm::Value* sums,
                                   llvm::IRBuilder<>& builder) = 0;
  // A float.
  virtual llvm::Value* RoundTf32(llvm::Value* value,
                                 llvm::IRBuilder<>& builder) = 0;
  // float32, perhaps several, rounded to 16-bit floats as integers of 16 bits.
  // Null, without code, if the device has no instruction for it.
  virtual llvm::Value* RoundTo16Bits(llvm::Value* value, bool to_bfloat,
                                     llvm::IRBuilder<>& builder) = 0;
  virtual WarpgroupOps& warpgroups() = 0;
};

// PTX, by LLVM's intrinsics.
std::unique_ptr<DeviceOps> NvptxOps(llvm::Module& module,
                                    const target::GpuLimits& limits);
// The host's code for the simulator (runtime/sim.c).
std::unique_ptr<DeviceOps> SimulatedOps(llvm::Module& module);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_DEVICE_OPS_H_
