// The stages of a kernel whose operands the copy engine fetches: copies of its
// tiles in shared memory, which one thread has filled and warpgroups empty, in
// turn. Two arrival barriers (ir/machine_op.h) a stage say how far each is:
//
//   if thread fetches:                     else:
//     for i in range(n):                     for i in range(n):
//       wait(empty[i % stages])                wait(full[i % stages])
//       copy boxes, then arrive at full        use the tiles
//                                              arrive at empty[i % stages]
//
// One arrival of the thread and all bytes of the boxes complete `full`, one
// arrival of each warp that uses the tiles completes `empty`. One more barrier
// is of tiles that are fetched once, before the loop.
#ifndef TILEFARM_COMPILER_LOWER_STAGE_RING_H_
#define TILEFARM_COMPILER_LOWER_STAGE_RING_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/lower/warpgroup_fetch.h"

namespace tilefarm::lower {

// The loop over iterations with another body, which is not unrolled: copies
// would have registers of their own for sums that are still being computed.
ir::Stmt RingLoop(const ir::ForNode& loop, ir::Stmt body);

class StageRing {
 public:
  // `once`: with the barrier of tiles that are fetched once.
  explicit StageRing(int64_t stages, bool once = false);

  int64_t stages() const { return stages_; }
  const ir::Buffer& barriers() const { return barriers_; }

  // Numbers of elements and rows of a tile are those of the operand: stage,
  // panel of columns, row, column in a row of 128 bytes.
  ir::Buffer Tiles(const WarpgroupOperand& operand) const;
  // Likewise with a single stage.
  static ir::Buffer TileOnce(const WarpgroupOperand& operand);
  static int64_t RowElements(const WarpgroupOperand& operand);

  // That of iteration `i`, counted from the kernel's begin.
  ir::Expr Stage(const ir::Expr& iteration) const;

  struct Fetched {
    const WarpgroupOperand* operand = nullptr;
    ir::Buffer tiles;
  };
  // What the thread that fetches does in an iteration.
  ir::Stmt Fetch(const ir::Expr& iteration,
                 const std::vector<Fetched>& fetched) const;
  ir::Stmt FetchOnce(const std::vector<Fetched>& fetched) const;
  // Until the iteration's tiles have arrived.
  ir::Stmt WaitForTiles(const ir::Expr& iteration) const;
  ir::Stmt WaitForOnce() const;
  // Says, if the condition holds, that the thread's warp does not use the
  // stage's tiles any more.
  ir::Stmt Release(const ir::Expr& stage, const ir::Expr& condition) const;
  // Before anything else, by one thread; `warps` use the tiles.
  ir::Stmt Init(const ir::Expr& is_first_thread, int64_t warps) const;

 private:
  ir::Expr Full(const ir::Expr& stage) const;
  ir::Expr Empty(const ir::Expr& stage) const;
  ir::Expr Parity(const ir::Expr& iteration) const;
  ir::Expr Once() const;
  // Lets the barrier expect the copies and starts them.
  static void CopyTiles(const std::vector<Fetched>& fetched,
                        const ir::Expr& stage, const ir::Expr& barrier,
                        std::vector<ir::Stmt>& out);

  const int64_t stages_;
  const bool once_;
  const ir::Buffer barriers_;
};

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_STAGE_RING_H_
