#include "compiler/te/tensor.h"

#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/verifier.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::te {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;

double LargestFloat(DataType dtype) {
  if (dtype == DataType::Float(16)) return 65504;
  if (dtype == DataType::Float(64)) return std::numeric_limits<double>::max();
  if (dtype == DataType::BFloat16()) return 0x1.fep127;
  return std::numeric_limits<float>::max();
}

Expr LargestValue(DataType dtype) {
  if (dtype.is_float()) return ir::FloatConst(LargestFloat(dtype), dtype);
  const int bits = dtype.is_int() ? dtype.bits - 1 : dtype.bits;
  return ir::IntConst(
      bits >= 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1), dtype);
}

Expr SmallestValue(DataType dtype) {
  if (dtype.is_float()) return ir::FloatConst(-LargestFloat(dtype), dtype);
  if (!dtype.is_int()) return ir::IntConst(0, dtype);
  return ir::IntConst(static_cast<int64_t>(~uint64_t{0} << (dtype.bits - 1)),
                      dtype);
}

Expr Combine(Reducer reducer, Expr old, Expr value) {
  switch (reducer) {
    case Reducer::kSum:
      return ir::MakeBinary(BinaryOp::kAdd, std::move(old), std::move(value));
    case Reducer::kProduct:
      return ir::MakeBinary(BinaryOp::kMul, std::move(old), std::move(value));
    case Reducer::kMin:
      return ir::MakeBinary(BinaryOp::kMin, std::move(old), std::move(value));
    case Reducer::kMax:
      return ir::MakeBinary(BinaryOp::kMax, std::move(old), std::move(value));
    case Reducer::kNone:
      break;
  }
  return value;
}

// The loop nest and block of one computed tensor.
ir::Stmt MakeNest(const Tensor& tensor, const std::string& block_name) {
  const ComputeOp& op = *tensor.op();
  ir::BlockNode block;
  block.name = block_name;
  block.predicate = ir::BoolConst(true);
  ir::VarMap vars;
  std::vector<std::pair<ir::Var, int64_t>> loops;
  const auto add = [&](const ir::Var& var, int64_t extent, ir::IterType type) {
    const ir::Var loop = ir::MakeVar(var->name);
    const ir::Var inner = ir::MakeVar("v_" + var->name);
    vars[var.get()] = inner;
    block.iters.push_back(
        {inner, {ir::IntConst(0), ir::IntConst(extent)}, type, loop});
    loops.emplace_back(loop, extent);
  };
  for (int i = 0; i < tensor.ndim(); ++i) {
    add(op.axes[i], tensor.dim(i), ir::IterType::kSpatial);
  }
  for (const ReduceAxis& axis : op.body.axes) {
    add(axis.var(), axis.extent(), ir::IterType::kReduce);
  }
  Indices indices;
  for (int i = 0; i < tensor.ndim(); ++i) {
    indices.push_back(block.iters[i].var);
  }
  Expr value = ir::Substitute(op.body.value, vars);
  if (op.body.reducer != Reducer::kNone) {
    block.init =
        ir::MakeStore(tensor.buffer(), indices,
                      op.body.init != nullptr
                          ? op.body.init
                          : ReducerIdentity(op.body.reducer, tensor.dtype()));
    value = Combine(op.body.reducer, ir::Load(tensor.buffer(), indices),
                    std::move(value));
  }
  block.body = ir::MakeStore(tensor.buffer(), indices, std::move(value));
  ir::Stmt nest = ir::BlockWithAccesses(std::move(block));
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    nest = ir::MakeFor(loop->first, ir::IntConst(loop->second), nest);
  }
  return nest;
}

}  // namespace

Expr ReducerIdentity(Reducer reducer, DataType dtype) {
  switch (reducer) {
    case Reducer::kProduct:
      return ir::ConstOf(dtype, 1);
    case Reducer::kMin:
      return LargestValue(dtype);
    case Reducer::kMax:
      return SmallestValue(dtype);
    case Reducer::kNone:
    case Reducer::kSum:
      break;
  }
  return ir::ConstOf(dtype, 0);
}

Body Sum(Expr value, std::vector<ReduceAxis> axes) {
  return Body(std::move(value), Reducer::kSum, std::move(axes));
}
Body Product(Expr value, std::vector<ReduceAxis> axes) {
  return Body(std::move(value), Reducer::kProduct, std::move(axes));
}
Body MinOver(Expr value, std::vector<ReduceAxis> axes) {
  return Body(std::move(value), Reducer::kMin, std::move(axes));
}
Body MaxOver(Expr value, std::vector<ReduceAxis> axes) {
  return Body(std::move(value), Reducer::kMax, std::move(axes));
}

namespace {

// The inputs of the tensor whose element function is running in this thread.
thread_local std::vector<Tensor>* recording = nullptr;

void Record(const Tensor& tensor) {
  if (recording == nullptr) return;
  for (const Tensor& known : *recording) {
    if (known.buffer() == tensor.buffer()) return;
  }
  recording->push_back(tensor);
}

// Appends the computed tensors that `tensor` needs, and itself, inputs first.
absl::Status Collect(const Tensor& tensor,
                     const std::set<const ir::BufferNode*>& params,
                     std::set<const ir::BufferNode*>* done,
                     std::vector<Tensor>* order) {
  if (!done->insert(tensor.buffer().get()).second) return absl::OkStatus();
  if (tensor.op() == nullptr) {
    if (params.count(tensor.buffer().get()) != 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("placeholder ", tensor.buffer()->name,
                     " is used but is not a parameter"));
  }
  for (const Tensor& input : tensor.op()->inputs) {
    TF_RETURN_IF_ERROR(Collect(input, params, done, order));
  }
  order->push_back(tensor);
  return absl::OkStatus();
}

}  // namespace

Expr Tensor::operator()(Indices indices) const {
  TF_CHECK(static_cast<int>(indices.size()) == ndim());
  Record(*this);
  return ir::Load(buffer_, std::move(indices));
}

Tensor Placeholder(std::string name, std::vector<int64_t> shape,
                   DataType dtype) {
  return Tensor(ir::MakeBuffer(std::move(name), dtype, std::move(shape)),
                nullptr);
}

Tensor Compute(std::string name, std::vector<int64_t> shape,
               const std::function<Body(const Indices&)>& element) {
  std::vector<ir::Var> axes;
  Indices indices;
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back(ir::MakeVar(absl::StrCat("i", i)));
    indices.push_back(axes.back());
  }
  std::vector<Tensor> inputs;
  std::vector<Tensor>* outer = std::exchange(recording, &inputs);
  Body body = element(indices);
  recording = outer;
  const DataType dtype = body.value->dtype;
  return Tensor(ir::MakeBuffer(std::move(name), dtype, std::move(shape)),
                std::make_shared<const ComputeOp>(ComputeOp{
                    std::move(axes), std::move(body), std::move(inputs)}));
}

absl::StatusOr<ir::PrimFuncPtr> CreatePrimFunc(
    std::string name, const std::vector<Tensor>& params) {
  std::set<const ir::BufferNode*> param_buffers;
  for (const Tensor& param : params) {
    if (!param_buffers.insert(param.buffer().get()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", param.buffer()->name, " is a parameter twice"));
    }
  }
  std::set<const ir::BufferNode*> done;
  std::vector<Tensor> order;
  for (const Tensor& param : params) {
    TF_RETURN_IF_ERROR(Collect(param, param_buffers, &done, &order));
  }
  ir::PrimFunc function;
  function.name = std::move(name);
  function.attrs["global_symbol"] = ir::Attr(function.name);
  function.attrs["tir.noalias"] = ir::Attr(true);
  for (const Tensor& param : params) function.params.push_back(param.buffer());

  ir::BlockNode root;
  root.name = "root";
  root.predicate = ir::BoolConst(true);
  std::vector<ir::Stmt> nests;
  std::set<std::string> names{"root"};
  for (const Tensor& tensor : order) {
    if (param_buffers.count(tensor.buffer().get()) == 0) {
      root.allocs.push_back(tensor.buffer());
    }
    std::string block_name = tensor.buffer()->name;
    for (int i = 1; !names.insert(block_name).second; ++i) {
      block_name = absl::StrCat(tensor.buffer()->name, "_", i);
    }
    nests.push_back(MakeNest(tensor, block_name));
  }
  root.body = ir::MakeSeq(std::move(nests));
  function.body = ir::BlockOf(std::move(root));
  TF_RETURN_IF_ERROR(ir::Verify(function));
  return std::make_shared<const ir::PrimFunc>(std::move(function));
}

}  // namespace tilefarm::te
