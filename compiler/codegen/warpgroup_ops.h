// What kernels with matrix units of warpgroups and the copy engine need of a
// device (Hopper): the operations of ir::MachineOp from kUniform on. Private:
// has LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_WARPGROUP_OPS_H_
#define TILEFARM_COMPILER_CODEGEN_WARPGROUP_OPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/ir/warpgroup_product.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tilefarm::codegen {

// Barriers and tiles are addresses in shared memory. Registers that an
// operation orders are replaced: their values before it must not be used any
// more.
class WarpgroupOps {
 public:
  using Value = llvm::Value*;
  using Registers = std::vector<llvm::Value*>;
  struct Shape {
    const ir::WarpgroupUnit* unit = nullptr;
    int columns = 0;
    // 0: rows run along depth.
    int64_t a_tile_bytes = 0, b_tile_bytes = 0;
    bool adds = true;
  };

  virtual ~WarpgroupOps() = default;
  virtual Value Uniform(Value value, llvm::IRBuilder<>& builder) = 0;
  virtual void BarrierInit(Value barrier, uint32_t arrivals,
                           llvm::IRBuilder<>& builder) = 0;
  virtual void BarrierExpect(Value barrier, uint32_t bytes,
                             llvm::IRBuilder<>& builder) = 0;
  virtual void BarrierArrive(Value barrier, Value condition,  // i1
                             llvm::IRBuilder<>& builder) = 0;
  virtual void BarrierWait(Value barrier, Value parity,  // i32
                           llvm::IRBuilder<>& builder) = 0;
  // `map`: the kernel's argument. `origin`: i32, the contiguous dimension
  // first.
  virtual void CopyBox(Value to, Value map, const std::vector<Value>& origin,
                       Value barrier, llvm::IRBuilder<>& builder) = 0;
  // `offsets`: i16, of the width first.
  virtual void CopyWindows(Value to, Value map,
                           const std::vector<Value>& origin,
                           const std::vector<Value>& offsets, Value barrier,
                           llvm::IRBuilder<>& builder) = 0;
  virtual void BoxFence(llvm::IRBuilder<>& builder) = 0;
  virtual void StoreBox(Value from, Value map, const std::vector<Value>& origin,
                        llvm::IRBuilder<>& builder) = 0;
  virtual void BoxStoreCommit(llvm::IRBuilder<>& builder) = 0;
  virtual void BoxStoreWait(int groups, llvm::IRBuilder<>& builder) = 0;
  virtual void WarpgroupBarrier(Value number,  // i32
                                llvm::IRBuilder<>& builder) = 0;
  // Registers of a first operand, i32.
  virtual void Fragment(Registers& registers, llvm::IRBuilder<>& builder) = 0;
  virtual void ProductFence(Registers& sums, llvm::IRBuilder<>& builder) = 0;
  // `a`: an address, or four registers. `sums`: [column step][row step][pair].
  virtual void Product(const Shape& shape, const Registers& a, Value b,
                       Registers& sums, llvm::IRBuilder<>& builder) = 0;
  virtual void ProductCommit(llvm::IRBuilder<>& builder) = 0;
  virtual void ProductWait(int groups, Registers& sums,
                           llvm::IRBuilder<>& builder) = 0;
};

// PTX, by assembly.
std::unique_ptr<WarpgroupOps> NvptxWarpgroupOps();
// Calls of runtime/sim_warpgroup.c.
std::unique_ptr<WarpgroupOps> SimulatedWarpgroupOps(llvm::Module& module);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_WARPGROUP_OPS_H_
