// What instructions of a target or a library compute at once. Lowering puts
// these in place of expressions and loops of a program and code generation
// translates them; the language has none of them, and Verify refuses a program
// that has one.
#ifndef TILEFARM_COMPILER_IR_MACHINE_OP_H_
#define TILEFARM_COMPILER_IR_MACHINE_OP_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"

namespace tilefarm::ir {

enum class MachineOp : uint8_t {
  // (a, b, sums): adds to lane i of `sums` the products of the i-th groups of
  // `a` and `b`, four bytes or two 16-bit numbers a group. An operand of one
  // group means that group for every lane. Both are loads.
  kDotProduct,
  // The same of integers where no instruction does all of it: 16-bit numbers,
  // bytes widened to them, are multiplied and added in pairs, then the pairs.
  kPairDotProduct,
  // (a, a_rows, b, b_rows, sums): the product of two tiles of a matrix unit,
  // added to `sums`, 16 rows of 16 lanes. A row of a tile is 64 bytes of groups
  // as above; row i of a holds the groups for row i of the sums, row k of b the
  // k-th groups for their columns. `a` and `b` are loads of a tile's first
  // element, its rows lie `a_rows` and `b_rows` elements apart.
  kTileProduct,
  // A matrix product by a library: library_call.h. An effect, no value.
  kLibraryGemm,
  // (a, b): lane 0 of a, lane 0 of b, lane 1 of a, ...
  kInterleave,
  // (row, tile): `tile` loads the first elements of n rows of n side by side,
  // n lanes; each lane's value is the `row`-th element of its row instead. All
  // of the tile's elements are there.
  kTransposed,
  // One number from the lanes of a vector, combined in halves.
  kLaneSum,
  kLaneProduct,
  kLaneMin,
  kLaneMax,
  // (load): brings the cache line of what it would load into the L2 cache. An
  // effect, no value; the address need not be valid.
  kPrefetch,
  // (): waits for all threads of a GPU's block, whose accesses to shared and
  // global memory it orders. An effect, no value. All of them must reach it.
  kBarrier,
  // (): the same for all threads of a cluster of blocks.
  kClusterBarrier,
  // (load, rank): what the block of this number in the cluster has where the
  // load of shared memory reads.
  kClusterLoad,
  // (value, mask, width): the value of the thread whose number in its group is
  // this thread's exclusive-or `mask`. Groups are `width` consecutive threads
  // of
  // a warp, a power of two, all of which must reach it; both are constants.
  kShuffleXor,
  // (copied): the value, a load or if_then_else of a condition, a load and zero
  // (CopiedLoad), arrives where it is stored by a later wait. Only as the value
  // of a store to shared memory.
  kAsync,
  // (): the asynchronous stores since the last commit are one group. An effect.
  kCommit,
  // (groups): waits until at most so many of the thread's groups have not
  // arrived, a constant. An effect.
  kWait,
  // Of GPUs, for whole warps: all 32 lanes must reach them. Fragments, the
  // parts
  // of matrices that a lane has, are vectors of 32-bit registers
  // (matrix_units.h): float32 if the elements are, else int32.

  // (load, matrices, transposed): the lane's fragments of 1, 2 or 4 matrices of
  // 8
  // rows of 16 bytes, a register of each. Lane l loads the first element of row
  // l % 8 of matrix l / 8 in shared memory; others' loads are not made. A lane
  // gets four bytes of row l / 4; of the transposed matrix, whose elements have
  // 16 bits, if the last argument is not 0.
  kLoadMatrix,
  // (unit, a, b, sums): the sums and the products of two tiles by the unit-th
  // of kWarpProducts.
  kWarpProduct,

  // (value): the float32 rounded to tf32, to nearest, ties away from zero.
  kRoundTf32,
  // (value): the same bits as int32 lanes.
  kWords,
  // (a, b): the lanes of a, then those of b.
  kConcat,
  // (value, first, lanes): so many lanes from the first on.
  kSlice,
  // The following need a GPU with warpgroups, 128 consecutive threads, and with
  // an engine that copies boxes of tensors (Hopper). All but kUniform and
  // kFragment are effects. Loads among the arguments are addresses and are not
  // read.
  //
  // (value): the value, which all threads of a warp have.
  kUniform,
  // An arrival barrier is an int64 in shared memory. It counts the arrivals and
  // the bytes of a phase; when both are complete the next phase begins, of the
  // other parity. The first phase has parity 0.
  //
  // (barrier, arrivals): begins the first phase, of so many arrivals a phase.
  kBarrierInit,
  // (barrier, bytes): arrives, and lets the phase expect so many bytes.
  kBarrierExpect,
  // (barrier, condition): arrives if the condition holds.
  kBarrierArrive,
  // (barrier, parity): waits until the phase of this parity is complete.
  kBarrierWait,
  // A copy of a box between a tensor and shared memory: tensor_box.h.
  kCopyBox,
  // The same of the windows of a convolution.
  kCopyWindows,
  // (): the thread's stores to shared memory are before box copies from there
  // that threads start after the next barrier.
  kBoxFence,
  // Copies a box from shared memory to a tensor: tensor_box.h.
  kStoreBox,
  // (): the box stores of the thread since the last commit are one group.
  kBoxStoreCommit,
  // (groups): waits until at most so many groups of the thread may still read
  // shared memory; 0: until all have written the tensors.
  kBoxStoreWait,
  // (warpgroup): waits for all threads of the warpgroup of this number, as
  // kBarrier does for those of the block.
  kWarpgroupBarrier,
  // (value): the fragment, computed before the next kProductFence. No effect.
  kFragment,
  // (sums, count): orders the warpgroup's accesses to the registers `sums`, so
  // many from the element on, before its next products.
  kProductFence,
  // A product by all threads of a warpgroup: warpgroup_product.h.
  kWarpgroupProduct,
  // (): the warpgroup's products since the last commit are one group.
  kProductCommit,
  // (groups, sums, count): waits until at most so many groups have not
  // finished. Only then the sums are valid and operands may be overwritten.
  kProductWait,
};

struct MachineOpNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kMachineOp;
  MachineOp op;
  std::vector<Expr> args;
  MachineOpNode(MachineOp o, std::vector<Expr> a, DataType t)
      : ExprNode(kKind, t), op(o), args(std::move(a)) {}
};

// The dtype follows from the arguments, whose number is checked (our
// invariant).
Expr MakeMachineOp(MachineOp op, std::vector<Expr> args);

// What kAsync copies: the load, and the condition without which zeros arrive
// (null: none).
struct CopiedLoad {
  const LoadNode* load = nullptr;
  Expr condition;
};
// nullopt: kAsync does not take the value.
std::optional<CopiedLoad> AsCopiedLoad(const Expr& value);

// As lowered programs are printed, without the prefix: "dot_product".
std::string_view MachineOpName(MachineOp op);
int MachineOpArity(MachineOp op);
// Whether loads among its arguments are only addresses.
bool TakesAddresses(MachineOp op);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_MACHINE_OP_H_
