// winograd: a 3x3 convolution with fewer multiplications, for other rounding.
//
//   b1, b2, b3, b4, b5, b6 = sch.winograd(conv, tile=m)        a = m + 2
//
//   for n, h, w, co, rh, rw, ci:               H, W: of the output
//     conv[n, h, w, co] += data[n, h + rh, w + rw, ci] * weight[rh, rw, ci, co]
//
//   ->
//   for x in a, y in a, ci, co:                kernel = G g G^T
//     conv_kernel[x, y, ci, co] = ... weight[0..2, 0..2, ci, co]
//   for x, y, n, th in H / m, tw in W / m, ci:
//     conv_tile[x, y, n, th, tw, ci] = data[n, th * m + x, tw * m + y, ci]
//   for x, y, n, th, tw, ci:                   input = B^T d B, in two steps
//     conv_tile_rows[x, y, ...] = ... conv_tile[0..a, y, ...]
//   for x, y, n, th, tw, ci:
//     conv_input[x, y, ...] = ... conv_tile_rows[x, 0..a, ...]
//   for x, y, n, th, tw, co, ci:
//     conv_product[x, y, n, th, tw, co] +=
//         conv_input[x, y, n, th, tw, ci] * conv_kernel[x, y, ci, co]
//   for x in m, y, n, th, tw, co:              output = A^T M A, in two steps
//     conv_product_rows[x, y, ...] = ... conv_product[0..a, y, ...]
//   for n, h, w, co:
//     conv[n, h, w, co] =
//         ... conv_product_rows[h % m, 0..a, n, h // m, w // m, co]
//
// Rows of the maps are chosen by Select, so that unrolling x and y leaves the
// additions of one row (winograd_transforms.h); the kernel's, which may run
// ahead of time, is written as products with the entries. H and W are rounded
// up; tiles beyond the border read zeros.
//
// Steps:
//   1. Check that the block is a sum of products in float32 whose loops are its
//      own.
//   2. Find the window: two reduce variables of extent 3, each with a spatial
//      one such that one factor, the data, depends on their sum alone, which
//      rules out strides and dilations; the other factor is the kernel.
//   3. Sort the other spatial variables into those of the data and those of
//      the kernel: one that is in both means groups.
//   4. Write the blocks.
//
// What is computed differs by rounding: by how much stands in
// winograd_transforms.h. Where an operand is infinite or not a number, so are
// all outputs of its tile.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/own_loops.h"
#include "compiler/schedule/reducer.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"
#include "compiler/schedule/winograd_transforms.h"

namespace tilefarm::schedule {
namespace {

// An output dimension and the window's along it; `sum` stands for both in the
// data.
struct Axis {
  const ir::IterVar* out = nullptr;
  const ir::IterVar* tap = nullptr;
  ir::Var sum;

  int64_t extent() const { return *ir::AsInt(out->dom.extent); }
};

struct Convolution {
  ir::Expr data, kernel;
  std::vector<Axis> axes;  // rows and columns
  // The others: reduced over; of the data; of the kernel.
  std::vector<const ir::IterVar*> channels, batch, outputs;

  const Axis* AxisOf(const ir::IterVar& iter) const {
    for (const Axis& axis : axes) {
      if (axis.out == &iter || axis.tap == &iter) return &axis;
    }
    return nullptr;
  }
};

bool Uses(const ir::Expr& expr, const ir::IterVar& iter) {
  return ir::UsesVar(expr, iter.var.get());
}

// Step 2 for one choice of the factors; fewer than two axes: no window.
Convolution FindWindow(const ir::BlockNode& block, const ir::Expr& data,
                       const ir::Expr& kernel) {
  Convolution conv{data, kernel, {}, {}, {}, {}};
  for (const ir::IterVar& out : block.iters) {
    if (out.type != ir::IterType::kSpatial || Uses(kernel, out) ||
        !Uses(data, out)) {
      continue;
    }
    for (const ir::IterVar& tap : block.iters) {
      if (tap.type != ir::IterType::kReduce || !Uses(conv.data, tap) ||
          !ir::IsConstInt(tap.dom.extent, kWinogradKernel) ||
          conv.axes.size() == 2) {
        continue;
      }
      arith::Analyzer analyzer;
      const ir::Var sum = ir::MakeVar(absl::StrCat(out.var->name, "_in"));
      const ir::Expr shifted = analyzer.Simplify(
          ir::Substitute(conv.data, {{tap.var.get(), sum - out.var}}));
      if (Uses(shifted, out)) continue;
      conv.data = shifted;
      conv.axes.push_back({&out, &tap, sum});
      break;
    }
  }
  return conv;
}

// Steps 1 (but for the loops) to 3.
absl::StatusOr<Convolution> MatchConvolution(const ScheduleState& state,
                                             const ir::BlockPtr& block) {
  const auto refuse = [&](std::string_view reason) {
    return state.Illegal(block.get(), reason);
  };
  const ir::DataType dtype = block->writes[0].buffer->dtype;
  if (!(dtype == ir::DataType::Float(32))) {
    return refuse(absl::StrCat("it sums up ", dtype.ToString(),
                               ", and the rounding is known for float32"));
  }
  const std::optional<Reducer> reducer = MatchReducer(*block);
  const auto* product = reducer && reducer->op == ir::BinaryOp::kAdd
                            ? ir::As<ir::BinaryNode>(reducer->value)
                            : nullptr;
  if (product == nullptr || product->op != ir::BinaryOp::kMul) {
    return refuse("it is no sum of products");
  }
  TF_RETURN_IF_ERROR(CheckNoAnnotations(state, block));
  int taps = 0;
  for (const ir::IterVar& iter : block->iters) {
    if (!ir::IsConstInt(iter.dom.min, 0)) {
      return refuse(absl::StrCat(iter.var->name, " does not start at 0"));
    }
    taps += iter.type == ir::IterType::kReduce &&
            ir::IsConstInt(iter.dom.extent, kWinogradKernel);
  }
  if (taps < 2) return refuse("its window is not 3 x 3");
  Convolution conv = FindWindow(*block, product->a, product->b);
  if (conv.axes.size() < 2) {
    conv = FindWindow(*block, product->b, product->a);
  }
  if (conv.axes.size() < 2) {
    return refuse(
        "no two variables of its window move with an output dimension each, "
        "both by steps of one element (strides and dilations are refused)");
  }
  for (const ir::IterVar& iter : block->iters) {
    if (conv.AxisOf(iter) != nullptr) continue;
    if (iter.type == ir::IterType::kReduce) {
      conv.channels.push_back(&iter);
      continue;
    }
    const bool in_data = Uses(conv.data, iter);
    if (in_data == Uses(conv.kernel, iter)) {
      return refuse(absl::StrCat(
          iter.var->name, in_data ? " is in both factors (groups are refused)"
                                  : " is in neither factor"));
    }
    (in_data ? conv.batch : conv.outputs).push_back(&iter);
  }
  return conv;
}

// A dimension of a block to be made: a new variable for an old one, or one that
// the block as it was has not.
struct Dim {
  std::string name;
  int64_t extent;
  const ir::IterVar* of = nullptr;
};

// Makes blocks of nests of their own, each the one writer of a new buffer.
class WinogradWriter {
 public:
  WinogradWriter(const ScheduleState& state, const ir::BlockNode& block)
      : function_(*state.FunctionOf(&block)), block_(block) {}

  struct Made {
    ir::BlockPtr block;
    ir::Buffer buffer;
  };
  using Value = std::function<ir::Expr(const std::vector<ir::Expr>& at,
                                       const ir::VarMap& vars)>;

  // buffer[dims] = value(dims), or the sum of it over `reduced`. `vars` of the
  // callback are the old variables that dimensions stand for.
  Made Add(const std::string& suffix, const std::vector<Dim>& dims,
           const std::vector<Dim>& reduced, const Value& value) {
    Made made;
    std::vector<int64_t> shape;
    ir::BlockNode block;
    std::vector<ir::Expr> at;
    ir::VarMap vars;
    arith::Analyzer analyzer;
    for (const std::vector<Dim>* list : {&dims, &reduced}) {
      for (const Dim& dim : *list) {
        block.iters.push_back(NewIter(
            dim.name, dim.extent,
            list == &dims ? ir::IterType::kSpatial : ir::IterType::kReduce));
        const ir::Var& var = block.iters.back().var;
        analyzer.Bind(var, 0, dim.extent);
        if (list == &dims) shape.push_back(dim.extent);
        if (dim.of != nullptr) vars[dim.of->var.get()] = var;
        at.push_back(var);
      }
    }
    const std::vector<ir::Expr> place(at.begin(), at.begin() + dims.size());
    const ir::DataType dtype = ir::DataType::Float(32);
    block.name = absl::StrCat(block_.name, suffix);
    made.buffer = ir::MakeBuffer(
        FreshBufferName(function_,
                        absl::StrCat(block_.writes[0].buffer->name, suffix)),
        dtype, std::move(shape));
    ir::Expr element = analyzer.Simplify(value(at, vars));
    if (!reduced.empty()) {
      block.init = ir::MakeStore(made.buffer, place, ir::FloatConst(0, dtype));
      element = ir::Load(made.buffer, place) + element;
    }
    block.body = ir::MakeStore(made.buffer, place, std::move(element));
    BlockNest nest = MakeNest(std::move(block));
    made.block = std::move(nest.block);
    nests_.push_back(std::move(nest.nest));
    return made;
  }
  // The nests in the order of their making.
  const std::vector<ir::Stmt>& nests() const { return nests_; }

 private:
  const ir::PrimFunc& function_;
  const ir::BlockNode& block_;
  std::vector<ir::Stmt> nests_;
};

// choice == 0 ? row(0) : choice == 1 ? row(1) : ...
ir::Expr Choose(const ir::Expr& choice, int64_t count,
                const std::function<ir::Expr(int64_t)>& row) {
  ir::Expr result = row(count - 1);
  for (int64_t i = count - 1; i-- > 0;) {
    result = ir::MakeSelect(ir::EQ(choice, ir::IntConst(i)), row(i), result);
  }
  return result;
}

ir::Expr FloatOf(double value) {
  return ir::FloatConst(static_cast<float>(value), ir::DataType::Float(32));
}

// `sum` may be null.
ir::Expr Plus(ir::Expr sum, ir::Expr term) {
  return sum == nullptr ? term : std::move(sum) + std::move(term);
}

// `buffer` at these indices, but with `value` in dimension `dim`.
ir::Expr LoadAt(const ir::Buffer& buffer, std::vector<ir::Expr> indices,
                size_t dim, int64_t value) {
  indices[dim] = ir::IntConst(value);
  return ir::Load(buffer, std::move(indices));
}

using RowMap = ir::Expr (*)(int, int64_t, const Elements&);

// A map along dimension `dim`: each of `rows` from all elements of `buffer`.
ir::Expr Mapped(RowMap row, int tile, int64_t rows, const ir::Buffer& buffer,
                const std::vector<ir::Expr>& at, size_t dim) {
  return Choose(at[dim], rows, [&](int64_t r) {
    return row(tile, r, [&](int64_t i) { return LoadAt(buffer, at, dim, i); });
  });
}

// The variable's place within its tile, where it is an axis of the window.
ir::Expr TileOf(const Convolution& conv, const ir::IterVar& iter, int tile) {
  return conv.AxisOf(iter) != nullptr
             ? ir::FloorDiv(iter.var, ir::IntConst(tile))
             : ir::Expr(iter.var);
}

}  // namespace

absl::StatusOr<std::vector<BlockRv>> Winograd(ScheduleState& state,
                                              BlockRv block_rv, int tile) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  if (!IsWinogradTile(tile)) {
    return state.Invalid(block.get(), "the tile is ", tile,
                         "; there are 2 and 4");
  }
  TF_ASSIGN_OR_RETURN(const std::vector<ir::ForPtr> loops,
                      CheckOwnLoops(state, block));
  TF_ASSIGN_OR_RETURN(const Convolution conv, MatchConvolution(state, block));
  TF_RETURN_IF_ERROR(state.CheckMayDiffer(block.get(), "it rounds differently",
                                          ir::FloatRule::kMayDiffer));
  const int64_t side = tile + kWinogradKernel - 1;
  const Axis& rows = conv.axes[0];
  const Axis& columns = conv.axes[1];

  // Step 4. The dimensions: x and y within a tile, tiles in place of outputs.
  const std::vector<Dim> within = {{"x", side}, {"y", side}};
  std::vector<Dim> data_dims = within, kernel_dims = within,
                   product_dims = within, channels;
  for (const ir::IterVar* iter : conv.channels) {
    channels.push_back({LoopName(*iter), *ir::AsInt(iter->dom.extent), iter});
  }
  for (const ir::IterVar& iter : block->iters) {
    if (iter.type != ir::IterType::kSpatial) continue;
    const int64_t extent = *ir::AsInt(iter.dom.extent);
    const bool is_axis = conv.AxisOf(iter) != nullptr;
    const Dim dim = {absl::StrCat(is_axis ? "t" : "", LoopName(iter)),
                     is_axis ? (extent + tile - 1) / tile : extent, &iter};
    product_dims.push_back(dim);
    if (is_axis || Uses(conv.data, iter)) data_dims.push_back(dim);
  }
  kernel_dims.insert(kernel_dims.end(), channels.begin(), channels.end());
  data_dims.insert(data_dims.end(), channels.begin(), channels.end());
  for (const ir::IterVar* iter : conv.outputs) {
    kernel_dims.push_back(
        {LoopName(*iter), *ir::AsInt(iter->dom.extent), iter});
  }

  WinogradWriter writer(state, *block);
  const WinogradWriter::Made kernel = writer.Add(
      "_kernel", kernel_dims, {},
      [&](const std::vector<ir::Expr>& at, const ir::VarMap& vars) {
        const auto tap = [&](int64_t row, int64_t column) {
          ir::VarMap all = vars;
          all[rows.tap->var.get()] = ir::IntConst(row);
          all[columns.tap->var.get()] = ir::IntConst(column);
          return ir::Substitute(conv.kernel, all);
        };
        const auto entry = [&](size_t dim, int64_t column) {
          return Choose(at[dim], side, [&](int64_t row) {
            return FloatOf(WinogradKernelEntry(tile, row, column));
          });
        };
        ir::Expr sum;
        for (int64_t column = 0; column < kWinogradKernel; ++column) {
          ir::Expr part;
          for (int64_t row = 0; row < kWinogradKernel; ++row) {
            part = Plus(part, entry(0, row) * tap(row, column));
          }
          sum = Plus(sum, entry(1, column) * part);
        }
        return sum;
      });
  const WinogradWriter::Made tiles = writer.Add(
      "_tile", data_dims, {},
      [&](const std::vector<ir::Expr>& at, ir::VarMap vars) {
        ir::Expr inside = ir::BoolConst(true);
        for (size_t d = 0; d < conv.axes.size(); ++d) {
          const Axis& axis = conv.axes[d];
          const ir::Expr place =
              vars[axis.out->var.get()] * int64_t{tile} + at[d];
          vars[axis.sum.get()] = place;
          if (axis.extent() % tile == 0) continue;
          inside = ir::And(
              inside,
              ir::LT(place, ir::IntConst(axis.extent() + kWinogradKernel - 1)));
        }
        const ir::Expr data = ir::Substitute(conv.data, vars);
        return ir::IsConstInt(inside, 1)
                   ? data
                   : ir::IfThenElseExpr(inside, data,
                                        ir::FloatConst(0, data->dtype));
      });
  const WinogradWriter::Made tile_rows = writer.Add(
      "_tile_rows", data_dims, {},
      [&](const std::vector<ir::Expr>& at, const ir::VarMap&) {
        return Mapped(WinogradInputRow, tile, side, tiles.buffer, at, 0);
      });
  const WinogradWriter::Made input = writer.Add(
      "_input", data_dims, {},
      [&](const std::vector<ir::Expr>& at, const ir::VarMap&) {
        return Mapped(WinogradInputRow, tile, side, tile_rows.buffer, at, 1);
      });
  const WinogradWriter::Made product = writer.Add(
      "_product", product_dims, channels,
      [&](const std::vector<ir::Expr>& at, const ir::VarMap& vars) {
        const auto operand = [&](const WinogradWriter::Made& made,
                                 const std::vector<Dim>& dims) {
          std::vector<ir::Expr> indices = {at[0], at[1]};
          for (size_t d = 2; d < dims.size(); ++d) {
            indices.push_back(vars.at(dims[d].of->var.get()));
          }
          return ir::Load(made.buffer, std::move(indices));
        };
        return operand(input, data_dims) * operand(kernel, kernel_dims);
      });
  std::vector<Dim> row_dims = product_dims;
  row_dims[0].extent = tile;
  const WinogradWriter::Made product_rows = writer.Add(
      "_product_rows", row_dims, {},
      [&](const std::vector<ir::Expr>& at, const ir::VarMap&) {
        return Mapped(WinogradOutputRow, tile, tile, product.buffer, at, 0);
      });

  // The last step has the block's name, variables and loops, but for those that
  // it reduced over.
  ir::BlockNode last = *block;
  last.init = nullptr;
  last.iters.clear();
  std::vector<ir::Expr> indices = {
      ir::FloorMod(rows.out->var, ir::IntConst(tile)), ir::IntConst(0)};
  for (const ir::IterVar& iter : block->iters) {
    if (iter.type != ir::IterType::kSpatial) continue;
    last.iters.push_back(iter);
    indices.push_back(TileOf(conv, iter, tile));
  }
  const auto* store = ir::As<ir::StoreNode>(block->body);
  last.body = ir::MakeStore(
      store->buffer, store->indices,
      Choose(ir::FloorMod(columns.out->var, ir::IntConst(tile)), tile,
             [&](int64_t row) {
               return WinogradOutputRow(tile, row, [&](int64_t i) {
                 return LoadAt(product_rows.buffer, indices, 1, i);
               });
             }));
  const ir::BlockPtr finished = ir::BlockWithAccesses(std::move(last));
  ir::Stmt nest = finished;
  for (size_t i = loops.size(); i-- > 0;) {
    if (LoopFeedsIter(loops[i].get(), block.get(), ir::IterType::kSpatial)) {
      nest = WithBody(*loops[i], std::move(nest));
    }
  }

  std::vector<ir::Stmt> nests = writer.nests();
  nests.push_back(std::move(nest));
  const ir::BlockPtr scope = state.Scope(block.get());
  ScopeEditor edit;
  edit.Replace(loops[0].get(), ir::MakeSeq(std::move(nests)));
  const std::vector<WinogradWriter::Made> made = {
      kernel, tiles, tile_rows, input, product, product_rows};
  for (const WinogradWriter::Made& each : made) edit.AddAlloc(each.buffer);
  state.Replace(scope.get(), edit.Apply(*scope),
                {{block.get(), finished.get()}});
  std::vector<BlockRv> result;
  for (const WinogradWriter::Made& each : made) {
    result.push_back(state.NewBlock(each.block));
  }
  return result;
}

}  // namespace tilefarm::schedule
