#include "compiler/ir/machine_op.h"

#include <array>
#include <cmath>

#include "base/check.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

struct MachineOpInfo {
  std::string_view name;
  int arity;
};

// In the order of the enum.
constexpr std::array<MachineOpInfo, 41> kMachineOps = {{
    {"dot_product", 3},
    {"pair_dot_product", 3},
    {"tile_product", 5},
    {"library_gemm", 16},
    {"interleave", 2},
    {"transposed", 2},
    {"lane_sum", 1},
    {"lane_product", 1},
    {"lane_min", 1},
    {"lane_max", 1},
    {"prefetch", 1},
    {"barrier", 0},
    {"cluster_barrier", 0},
    {"cluster_load", 2},
    {"shuffle_xor", 3},
    {"async", 1},
    {"commit", 0},
    {"wait", 1},
    {"load_matrix", 3},
    {"warp_product", 4},
    {"round_tf32", 1},
    {"words", 1},
    {"concat", 2},
    {"slice", 3},
    {"uniform", 1},
    {"barrier_init", 2},
    {"barrier_expect", 2},
    {"barrier_arrive", 2},
    {"barrier_wait", 2},
    {"copy_box", 18},
    {"copy_windows", 31},
    {"box_fence", 0},
    {"store_box", 18},
    {"box_store_commit", 0},
    {"box_store_wait", 1},
    {"warpgroup_barrier", 1},
    {"fragment", 1},
    {"product_fence", 2},
    {"warpgroup_product", 10},
    {"product_commit", 0},
    {"product_wait", 3},
}};
static_assert(kMachineOps.size() ==
              static_cast<size_t>(MachineOp::kProductWait) + 1);

DataType ResultOf(MachineOp op, const std::vector<Expr>& args) {
  if (args.empty()) return DataType::Int(32);
  const DataType last = args.back()->dtype;
  switch (op) {
    case MachineOp::kDotProduct:
    case MachineOp::kPairDotProduct:
    case MachineOp::kTileProduct:
    case MachineOp::kLibraryGemm:
    case MachineOp::kTransposed:
    case MachineOp::kPrefetch:
    case MachineOp::kWarpProduct:
    case MachineOp::kRoundTf32:
      return last;
    case MachineOp::kInterleave:
      return last.with_lanes(2 * last.lanes);
    case MachineOp::kLaneSum:
    case MachineOp::kLaneProduct:
    case MachineOp::kLaneMin:
    case MachineOp::kLaneMax:
      return last.element();
    case MachineOp::kLoadMatrix: {
      const DataType element = args[0]->dtype;
      return (element == DataType::Float(32) ? element : DataType::Int(32))
          .with_lanes(static_cast<int>(*AsInt(args[1])));
    }
    case MachineOp::kWords:
      return DataType::Int(32).with_lanes(last.lanes * last.bits / 32);
    case MachineOp::kConcat:
      return last.with_lanes(args[0]->dtype.lanes + last.lanes);
    case MachineOp::kSlice:
      return args[0]->dtype.with_lanes(static_cast<int>(*AsInt(args[2])));
    case MachineOp::kShuffleXor:
    case MachineOp::kAsync:
    case MachineOp::kBarrier:
    case MachineOp::kClusterBarrier:
    case MachineOp::kClusterLoad:
    case MachineOp::kCommit:
    case MachineOp::kWait:
    case MachineOp::kUniform:
    case MachineOp::kBarrierInit:
    case MachineOp::kBarrierExpect:
    case MachineOp::kBarrierArrive:
    case MachineOp::kBarrierWait:
    case MachineOp::kCopyBox:
    case MachineOp::kCopyWindows:
    case MachineOp::kBoxFence:
    case MachineOp::kStoreBox:
    case MachineOp::kBoxStoreCommit:
    case MachineOp::kBoxStoreWait:
    case MachineOp::kWarpgroupBarrier:
    case MachineOp::kFragment:
    case MachineOp::kProductFence:
    case MachineOp::kWarpgroupProduct:
    case MachineOp::kProductCommit:
    case MachineOp::kProductWait:
      return args.front()->dtype;
  }
  return last;
}

bool IsZero(const Expr& value) {
  if (const auto* broadcast = As<BroadcastNode>(value)) {
    return IsZero(broadcast->value);
  }
  const auto* number = As<FloatConstNode>(value);
  return number != nullptr ? number->value == 0 && !std::signbit(number->value)
                           : IsConstInt(value, 0);
}

}  // namespace

std::optional<CopiedLoad> AsCopiedLoad(const Expr& value) {
  if (const auto* load = As<LoadNode>(value)) {
    return load->predicate == nullptr ? std::optional(CopiedLoad{load, nullptr})
                                      : std::nullopt;
  }
  const auto* guarded = As<CallNode>(value);
  if (guarded == nullptr || guarded->op != Intrinsic::kIfThenElse) {
    return std::nullopt;
  }
  const Expr& condition = guarded->args[0];
  if (condition->dtype.is_vector() || !IsZero(guarded->args[2])) {
    return std::nullopt;
  }
  std::optional<CopiedLoad> copied = AsCopiedLoad(guarded->args[1]);
  if (!copied) return std::nullopt;
  copied->condition =
      copied->condition == nullptr
          ? condition
          : MakeBinary(BinaryOp::kAnd, condition, copied->condition);
  return copied;
}

Expr MakeMachineOp(MachineOp op, std::vector<Expr> args) {
  TF_CHECK(static_cast<int>(args.size()) == MachineOpArity(op));
  const DataType dtype = ResultOf(op, args);
  return std::make_shared<const MachineOpNode>(op, std::move(args), dtype);
}

std::string_view MachineOpName(MachineOp op) {
  return kMachineOps[static_cast<size_t>(op)].name;
}

int MachineOpArity(MachineOp op) {
  return kMachineOps[static_cast<size_t>(op)].arity;
}

bool TakesAddresses(MachineOp op) {
  return op == MachineOp::kPrefetch ||
         (op > MachineOp::kUniform && op <= MachineOp::kProductWait &&
          op != MachineOp::kFragment);
}

}  // namespace tilefarm::ir
