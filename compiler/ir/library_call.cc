#include "compiler/ir/library_call.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

constexpr LibraryKernel kKernels[] = {
    {"onednn.sgemm", "onednn"},
    {"openblas.sgemm", "openblas"},
};

absl::Status No(std::string_view reason) {
  return absl::FailedPreconditionError(std::string(reason));
}

// One access: how far a step of each block variable moves it.
struct Access {
  const LoadNode* load = nullptr;
  std::vector<int64_t> strides;  // by position in the block's iters; 0: unused
};

// The variables of one role (rows, columns, sums, batch), fused: the extent,
// and the stride in each access that uses them.
struct Role {
  int64_t extent = 1;
  int64_t strides[3] = {0, 0, 0};  // of a, b, c
};

std::optional<int> IterOf(const BlockNode& block, const Expr& index) {
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].var == index) return static_cast<int>(i);
  }
  return std::nullopt;
}

absl::Status ReadStrides(const BlockNode& block, const BufferNode& buffer,
                         const std::vector<Expr>& indices, Access& access) {
  if (buffer.dtype != DataType::Float(32)) {
    return No(absl::StrCat("buffer ", buffer.name, " is not of float32"));
  }
  if (!buffer.dim_align.empty() || !buffer.is_dense()) {
    return No(absl::StrCat("buffer ", buffer.name, " is not dense"));
  }
  access.strides.assign(block.iters.size(), 0);
  int64_t stride = 1;
  for (size_t d = indices.size(); d-- > 0; stride *= buffer.shape[d]) {
    if (AsInt(indices[d]).has_value()) continue;
    const std::optional<int> iter = IterOf(block, indices[d]);
    if (!iter || access.strides[*iter] != 0) {
      return No(absl::StrCat("an index of buffer ", buffer.name,
                             " is not a variable of its own"));
    }
    access.strides[*iter] = stride;
  }
  return absl::OkStatus();
}

bool SameIndices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) {
                      return x == y || (AsInt(x) && AsInt(x) == AsInt(y));
                    });
}

// The three accesses of `C = C + A * B`.
struct Product {
  Access a, b, c;
};

absl::StatusOr<Product> ReadProduct(const BlockNode& block) {
  const auto* init = As<StoreNode>(block.init);
  const auto* store = As<StoreNode>(block.body);
  if (init == nullptr || store == nullptr) {
    return No("it is not one sum of products with its init");
  }
  const auto* zero = As<FloatConstNode>(init->value);
  if (zero == nullptr || zero->value != 0 || init->buffer != store->buffer ||
      !SameIndices(init->indices, store->indices)) {
    return No("its init is not 0");
  }
  const auto* sum = As<BinaryNode>(store->value);
  if (sum == nullptr || sum->op != BinaryOp::kAdd) return No("it is no sum");
  const auto is_old = [&](const Expr& e) {
    const auto* load = As<LoadNode>(e);
    return load != nullptr && load->buffer == store->buffer &&
           SameIndices(load->indices, store->indices);
  };
  const bool first = is_old(sum->a);
  if (!first && !is_old(sum->b)) return No("it does not add to its output");
  const auto* product = As<BinaryNode>(first ? sum->b : sum->a);
  if (product == nullptr || product->op != BinaryOp::kMul) {
    return No("what it adds is no product");
  }
  Product result;
  result.a.load = As<LoadNode>(product->a);
  result.b.load = As<LoadNode>(product->b);
  if (result.a.load == nullptr || result.b.load == nullptr) {
    return No("what it adds is no product of two elements");
  }
  result.c.load = As<LoadNode>(first ? sum->a : sum->b);
  if (result.a.load->buffer == store->buffer ||
      result.b.load->buffer == store->buffer) {
    return No("it reads what it writes");
  }
  for (Access* access : {&result.a, &result.b, &result.c}) {
    TF_RETURN_IF_ERROR(ReadStrides(block, *access->load->buffer,
                                   access->load->indices, *access));
  }
  return result;
}

// Fuses the variables; fails if the result does not have a constant stride in
// each access.
absl::StatusOr<Role> Collapse(const BlockNode& block,
                              const std::vector<int>& iters,
                              const Product& product, std::string_view what) {
  struct Part {
    int64_t extent;
    int64_t strides[3];
  };
  std::vector<Part> parts;
  for (const int i : iters) {
    parts.push_back(
        {*AsInt(block.iters[i].dom.extent),
         {product.a.strides[i], product.b.strides[i], product.c.strides[i]}});
  }
  // Sort innermost first, by the first access that uses all of them.
  std::sort(parts.begin(), parts.end(), [](const Part& x, const Part& y) {
    return std::max({x.strides[0], x.strides[1]}) <
           std::max({y.strides[0], y.strides[1]});
  });
  Role role;
  for (const Part& part : parts) {
    for (int j = 0; j < 3; ++j) {
      if (role.extent == 1) {
        role.strides[j] = part.strides[j];
      } else if (part.strides[j] != role.strides[j] * role.extent) {
        return No(absl::StrCat("its ", std::string(what),
                               " are not evenly apart in memory"));
      }
    }
    role.extent *= part.extent;
  }
  return role;
}

struct Layout {
  bool transposed = false;
  int64_t leading = 1;
};

// The layout of a matrix of rows x columns with these strides: row-major, or
// the transpose of a row-major one.
absl::StatusOr<Layout> LayoutOf(int64_t rows, int64_t row_stride,
                                int64_t columns, int64_t column_stride,
                                std::string_view name) {
  if (columns == 1 || column_stride == 1) {
    const int64_t leading = rows == 1 ? columns : row_stride;
    if (leading >= columns) return Layout{false, leading};
  }
  if (rows == 1 || row_stride == 1) {
    const int64_t leading = columns == 1 ? rows : column_stride;
    if (leading >= rows) return Layout{true, leading};
  }
  return No(absl::StrCat("neither rows nor columns of ", std::string(name),
                         " are contiguous"));
}

Expr FirstElement(const BlockNode& block, const LoadNode& load) {
  VarMap zeros;
  for (const IterVar& iter : block.iters) {
    zeros[iter.var.get()] = IntConst(0);
  }
  std::vector<Expr> indices;
  for (const Expr& index : load.indices) {
    indices.push_back(Substitute(index, zeros));
  }
  return Load(load.buffer, std::move(indices));
}

struct MarkCollector : Visitor {
  std::set<std::string> names;
  using Visitor::Visit;

 protected:
  void VisitBlock(const BlockNode& block) override {
    const auto mark = block.annotations.find(kLibrary);
    if (mark != block.annotations.end()) {
      const std::string* name = mark->second.AsString();
      names.insert(name == nullptr ? "?" : *name);
    }
    Visitor::VisitBlock(block);
  }
};

}  // namespace

std::span<const LibraryKernel> LibraryKernels() { return kKernels; }

std::optional<int> FindLibraryKernel(std::string_view name) {
  for (size_t i = 0; i < std::size(kKernels); ++i) {
    if (kKernels[i].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

absl::StatusOr<GemmForm> MatchGemm(const BlockNode& block) {
  if (!IsConstInt(block.predicate, 1) || !block.allocs.empty()) {
    return No("it is guarded or has buffers of its own");
  }
  TF_ASSIGN_OR_RETURN(Product product, ReadProduct(block));
  std::vector<int> of_m, of_n, of_k, of_batch;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const IterVar& iter = block.iters[i];
    const std::optional<int64_t> extent = AsInt(iter.dom.extent);
    if (!IsConstInt(iter.dom.min, 0) || !extent || *extent < 1) {
      return No("a variable does not run from 0 to a constant");
    }
    if (*extent == 1) continue;
    const bool a = product.a.strides[i] != 0, b = product.b.strides[i] != 0;
    const bool c = product.c.strides[i] != 0;
    const bool reduces = iter.type == IterType::kReduce;
    if (reduces == c || (!a && !b) || (reduces && !(a && b)) ||
        iter.type == IterType::kOpaque) {
      return No(absl::StrCat("variable ", iter.var->name,
                             " is none of a matrix product"));
    }
    (reduces  ? of_k
     : a && b ? of_batch
     : a      ? of_m
              : of_n)
        .push_back(static_cast<int>(i));
  }
  if (of_m.empty() && of_n.empty())
    return No("it has neither rows nor columns");
  TF_ASSIGN_OR_RETURN(Role m, Collapse(block, of_m, product, "rows"));
  TF_ASSIGN_OR_RETURN(Role n, Collapse(block, of_n, product, "columns"));
  TF_ASSIGN_OR_RETURN(Role k, Collapse(block, of_k, product, "sums"));
  TF_ASSIGN_OR_RETURN(Role batch,
                      Collapse(block, of_batch, product, "batches"));
  // If the output's columns are contiguous, compute the transposed product.
  if ((n.extent > 1 && n.strides[2] != 1) ||
      (n.extent == 1 && m.strides[2] == 1)) {
    std::swap(product.a, product.b);
    std::swap(m, n);
    for (Role* role : {&m, &n, &k, &batch}) {
      std::swap(role->strides[0], role->strides[1]);
    }
  }
  TF_ASSIGN_OR_RETURN(const Layout a, LayoutOf(m.extent, m.strides[0], k.extent,
                                               k.strides[0], "an operand"));
  TF_ASSIGN_OR_RETURN(const Layout b, LayoutOf(k.extent, k.strides[1], n.extent,
                                               n.strides[1], "an operand"));
  TF_ASSIGN_OR_RETURN(const Layout c, LayoutOf(m.extent, m.strides[2], n.extent,
                                               n.strides[2], "the output"));
  if (c.transposed) return No("rows of the output are not contiguous");
  for (const int64_t number : {m.extent, n.extent, k.extent, batch.extent,
                               a.leading, b.leading, c.leading}) {
    if (number > INT32_MAX) return No("a dimension exceeds 32 bits");
  }
  GemmForm form;
  form.a = FirstElement(block, *product.a.load);
  form.b = FirstElement(block, *product.b.load);
  form.c = FirstElement(block, *product.c.load);
  form.m = m.extent;
  form.n = n.extent;
  form.k = k.extent;
  form.lda = a.leading;
  form.ldb = b.leading;
  form.ldc = c.leading;
  form.transpose_a = a.transposed;
  form.transpose_b = b.transposed;
  form.batch = batch.extent;
  form.batch_a = batch.strides[0];
  form.batch_b = batch.strides[1];
  form.batch_c = batch.strides[2];
  return form;
}

absl::Status CheckLibraryNest(const BlockNode& block,
                              std::span<const ForNode* const> loops) {
  const auto loop_of = [&](const IterVar& iter) -> const ForNode* {
    for (const ForNode* loop : loops) {
      if (loop->var == iter.binding) return loop;
    }
    return nullptr;
  };
  size_t bound = 0;
  for (const IterVar& iter : block.iters) {
    // Loops of one iteration may have been removed.
    if (IsConstInt(iter.binding, 0) && IsConstInt(iter.dom.extent, 1)) continue;
    const ForNode* loop = loop_of(iter);
    if (loop == nullptr || AsInt(loop->extent) != AsInt(iter.dom.extent)) {
      return No(absl::StrCat("variable ", iter.var->name,
                             " has no whole loop of its own"));
    }
    ++bound;
  }
  if (bound != loops.size()) return No("a loop repeats the product");
  for (const ForNode* loop : loops) {
    if (loop->for_kind != ForKind::kSerial || !IsConstInt(loop->min, 0)) {
      return No(absl::StrCat("loop ", loop->var->name, " is not serial"));
    }
  }
  return absl::OkStatus();
}

Stmt MakeGemmCall(int kernel, const GemmForm& form) {
  std::vector<Expr> args = {IntConst(kernel), form.a, form.b, form.c};
  for (const int64_t number :
       {form.m, form.n, form.k, form.lda, form.ldb, form.ldc,
        int64_t{form.transpose_a}, int64_t{form.transpose_b}, form.batch,
        form.batch_a, form.batch_b, form.batch_c}) {
    args.push_back(IntConst(number));
  }
  return std::make_shared<const EvaluateNode>(
      MakeMachineOp(MachineOp::kLibraryGemm, std::move(args)));
}

const MachineOpNode* AsGemmCall(const Stmt& stmt) {
  const auto* evaluate = As<EvaluateNode>(stmt);
  const auto* call =
      evaluate == nullptr ? nullptr : As<MachineOpNode>(evaluate->value);
  return call != nullptr && call->op == MachineOp::kLibraryGemm ? call
                                                                : nullptr;
}

std::vector<std::string> LibraryCallsIn(const Stmt& stmt) {
  MarkCollector collector;
  collector.Visit(stmt);
  return {collector.names.begin(), collector.names.end()};
}

}  // namespace tilefarm::ir
