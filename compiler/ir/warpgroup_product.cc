#include "compiler/ir/warpgroup_product.h"

namespace tilefarm::ir {
namespace {

const WarpgroupUnit kUnits[] = {
    {DataType::BFloat16(), DataType::Float(32), 16, true},
    {DataType::Float(16), DataType::Float(32), 16, true},
    {DataType::Int(8), DataType::Int(32), 32, false},
    {DataType::UInt(8), DataType::Int(32), 32, false},
};

}  // namespace

const WarpgroupUnit* FindWarpgroupUnit(DataType operand, DataType sum) {
  for (const WarpgroupUnit& unit : kUnits) {
    if (unit.operand == operand && unit.sum == sum) return &unit;
  }
  return nullptr;
}

bool IsWarpgroupColumns(int64_t columns) {
  return columns >= 8 && columns <= 256 && columns % 8 == 0;
}

Expr MakeWarpgroupProduct(const WarpgroupProduct& product) {
  return MakeMachineOp(
      MachineOp::kWarpgroupProduct,
      {product.sums, product.a, product.b, IntConst(product.columns),
       IntConst(product.a_tile_bytes), IntConst(product.b_tile_bytes),
       IntConst(product.row_step), IntConst(product.column_step),
       IntConst(product.pair_step), IntConst(product.adds ? 1 : 0)});
}

WarpgroupProduct AsWarpgroupProduct(const MachineOpNode& op) {
  const auto number = [&](size_t i) { return *AsInt(op.args[i]); };
  return {op.args[0], op.args[1], op.args[2], number(3), number(4),
          number(5),  number(6),  number(7),  number(8), number(9) != 0};
}

}  // namespace tilefarm::ir
