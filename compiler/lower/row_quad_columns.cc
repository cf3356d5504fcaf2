#include "compiler/lower/row_quad_columns.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/element_update.h"
#include "compiler/lower/iteration_analysis.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForNode;

absl::Status RefuseQuads(const std::string& what, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", ir::kRowQuads, ": ", why));
}

absl::Status RefuseBuffer(const ir::BufferNode& buffer,
                          const std::string& why) {
  return RefuseQuads(absl::StrCat("buffer ", buffer.name), why);
}

absl::Status RefuseLoop(const ir::VarNode& var, const std::string& why) {
  return RefuseQuads(absl::StrCat("loop ", var.name), why);
}

struct QuadAccess {
  const ir::BufferNode* buffer;
  const std::vector<Expr>* indices;
};

void AddLoads(const Expr& e, std::vector<QuadAccess>& loads) {
  ir::PostOrderExprs(e, [&](const Expr& x) {
    if (const auto* load = ir::As<ir::LoadNode>(x)) {
      loads.push_back({load->buffer.get(), &load->indices});
    }
  });
}

// A store, the loops around it, and what it and the conditions around it read.
struct QuadStatement {
  const ir::StoreNode* store;
  std::vector<const ForNode*> loops;  // outermost first
  std::vector<QuadAccess> loads;
  bool product = false;
  // Of a product: the operand by rows, and the other one.
  QuadAccess a{}, b{};

  const ForNode* Loop(const ir::VarNode* var) const {
    const auto found = std::ranges::find_if(
        loops, [&](const ForNode* loop) { return loop->var.get() == var; });
    return found == loops.end() ? nullptr : *found;
  }
};

class QuadStatements : public ir::Visitor {
 public:
  explicit QuadStatements(IndexMath& math) : math_(math) {}
  using Visitor::Visit;
  void Visit(const Expr& e) override {
    // Bounds of loops, lets, effects.
    AddLoads(e, elsewhere);
    FindMachineOps(e);
  }

  std::vector<QuadStatement> statements;
  std::vector<QuadAccess> elsewhere;  // loads that no statement makes
  std::set<const ir::BufferNode*> local;
  bool exchanges = false;  // threads do, already

 protected:
  void VisitFor(const ForNode& s) override {
    Visit(s.min);
    Visit(s.extent);
    BindLoop(math_, s);
    loops_.push_back(&s);
    Visit(s.body);
    loops_.pop_back();
  }
  void VisitIf(const ir::IfNode& s) override {
    FindMachineOps(s.condition);
    conditions_.push_back(s.condition);
    Visit(s.then_case);
    if (s.else_case != nullptr) Visit(s.else_case);
    conditions_.pop_back();
  }
  void VisitAlloc(const ir::AllocNode& s) override {
    if (ir::ScopeOf(*s.buffer) == ir::MemoryScope::kLocal) {
      local.insert(s.buffer.get());
    }
    Visit(s.body);
  }
  void VisitStore(const ir::StoreNode& s) override {
    QuadStatement statement{.store = &s, .loops = loops_};
    statement.product = std::ranges::any_of(loops_, [](const ForNode* loop) {
      return loop->annotations.contains(ir::kWarpMatrix);
    });
    const auto add = [&](const Expr& e) {
      AddLoads(e, statement.loads);
      FindMachineOps(e);
    };
    add(s.value);
    if (s.predicate != nullptr) add(s.predicate);
    for (const Expr& index : s.indices) add(index);
    for (const Expr& condition : conditions_) add(condition);
    statements.push_back(std::move(statement));
  }

 private:
  void FindMachineOps(const Expr& e) {
    ir::PostOrderExprs(e, [&](const Expr& x) {
      exchanges |= x->kind == ir::ExprKind::kMachineOp;
    });
  }

  IndexMath& math_;
  std::vector<const ForNode*> loops_;
  std::vector<Expr> conditions_;
};

bool UsesVar(const QuadAccess& access, const ir::VarNode* var) {
  return std::ranges::any_of(*access.indices, [&](const Expr& index) {
    return ir::UsesVar(index, var);
  });
}

class ColumnDivider {
 public:
  explicit ColumnDivider(const ir::VarNode* thread) : thread_(thread) {}

  absl::StatusOr<RowQuads> Divide(const ir::Stmt& body) {
    QuadStatements found(math_);
    found.Visit(body);
    if (found.exchanges) {
      return RefuseLoop(*thread_,
                        "its iterations exchange values already; each has to "
                        "compute whole rows on its own");
    }
    local_ = std::move(found.local);
    for (QuadStatement& s : found.statements) {
      if (s.product) TF_RETURN_IF_ERROR(FindOperands(s));
    }
    do {
      changed_ = false;
      for (const QuadStatement& s : found.statements) {
        TF_RETURN_IF_ERROR(s.product ? Seed(s) : Propagate(s));
      }
    } while (changed_);
    for (const QuadStatement& s : found.statements) {
      const auto dim = out_.dims.find(s.store->buffer.get());
      if (dim == out_.dims.end()) continue;
      const int64_t columns = dim->first->shape[dim->second];
      if (columns % kQuadColumns != 0) {
        return RefuseBuffer(
            *dim->first,
            absl::StrCat("it has ", columns, " columns, not a multiple of ",
                         kQuadColumns));
      }
    }
    for (const QuadAccess& load : found.elsewhere) {
      if (out_.dims.contains(load.buffer)) {
        return RefuseBuffer(*load.buffer,
                            "a bound or a let reads a column; only stores and "
                            "their conditions can");
      }
    }
    for (const QuadStatement& s : found.statements) {
      TF_RETURN_IF_ERROR(s.product ? CheckProduct(s) : Check(s));
    }
    for (const QuadStatement& s : found.statements) {
      TF_RETURN_IF_ERROR(CheckLoops(s));
    }
    return std::move(out_);
  }

 private:
  // The lanes have rows of one operand.
  absl::Status FindOperands(QuadStatement& s) {
    const ir::BufferNode& sums = *s.store->buffer;
    std::vector<QuadAccess> operands;
    for (const QuadAccess& load : s.loads) {
      if (load.buffer != &sums) operands.push_back(load);
    }
    if (!local_.contains(&sums) || operands.size() != 2) {
      return RefuseBuffer(sums,
                          "a product of two operands that is added to local "
                          "sums is expected");
    }
    const auto by_rows = [&](const QuadAccess& operand) {
      return local_.contains(operand.buffer) || UsesVar(operand, thread_);
    };
    if (!by_rows(operands[0])) std::swap(operands[0], operands[1]);
    if (!by_rows(operands[0]) || by_rows(operands[1])) {
      return RefuseBuffer(sums,
                          "one operand of its product has to be by the rows of "
                          "a thread, the other one the same for all threads");
    }
    s.a = operands[0];
    s.b = operands[1];
    return absl::OkStatus();
  }

  absl::Status Mark(const ir::BufferNode& buffer, size_t dim) {
    const auto [known, added] = out_.dims.emplace(&buffer, dim);
    changed_ |= added;
    if (known->second == dim) return absl::OkStatus();
    return RefuseBuffer(buffer,
                        absl::StrCat("dimensions ", known->second, " and ", dim,
                                     " are both over columns"));
  }

  // The columns of the sums, and of a first operand in registers its terms.
  absl::Status Seed(const QuadStatement& s) {
    const auto mark = [&](const QuadAccess& access, const QuadAccess& with,
                          const QuadAccess& without) -> absl::Status {
      for (size_t d = 0; d < access.indices->size(); ++d) {
        for (const ForNode* loop : s.loops) {
          const ir::VarNode* var = loop->var.get();
          if (ir::UsesVar((*access.indices)[d], var) && UsesVar(with, var) &&
              !UsesVar(without, var)) {
            TF_RETURN_IF_ERROR(Mark(*access.buffer, d));
          }
        }
      }
      return absl::OkStatus();
    };
    const QuadAccess sums = SumsOf(s);
    TF_RETURN_IF_ERROR(mark(sums, s.b, s.a));
    return local_.contains(s.a.buffer) ? mark(s.a, s.b, sums)
                                       : absl::OkStatus();
  }

  static QuadAccess SumsOf(const QuadStatement& s) {
    return {s.store->buffer.get(), &s.store->indices};
  }

  std::vector<QuadAccess> LocalAccesses(const QuadStatement& s) const {
    std::vector<QuadAccess> accesses = s.loads;
    accesses.push_back(SumsOf(s));
    std::erase_if(accesses, [&](const QuadAccess& access) {
      return !local_.contains(access.buffer);
    });
    return accesses;
  }

  bool IsOverLoops(const QuadStatement& s, const Expr& index) const {
    return std::ranges::any_of(s.loops, [&](const ForNode* loop) {
      return loop->for_kind != ir::ForKind::kThreadBinding &&
             ir::UsesVar(index, loop->var.get());
    });
  }

  // What is indexed as columns are has columns.
  absl::Status Propagate(const QuadStatement& s) {
    const std::vector<QuadAccess> accesses = LocalAccesses(s);
    for (const QuadAccess& from : accesses) {
      const auto known = out_.dims.find(from.buffer);
      if (known == out_.dims.end()) continue;
      const Expr& column = (*from.indices)[known->second];
      if (!IsOverLoops(s, column)) continue;
      for (const QuadAccess& to : accesses) {
        for (size_t d = 0; d < to.indices->size(); ++d) {
          if (Same(column, (*to.indices)[d])) {
            TF_RETURN_IF_ERROR(Mark(*to.buffer, d));
          }
        }
      }
    }
    return absl::OkStatus();
  }

  bool Same(const Expr& a, const Expr& b) {
    return math_.Difference(a, b) == std::optional<int64_t>(0);
  }

  absl::Status CheckProduct(const QuadStatement& s) {
    out_.roles[s.store] = QuadRole::kProduct;
    const QuadAccess sums = SumsOf(s);
    if (!out_.dims.contains(sums.buffer)) {
      return RefuseBuffer(*sums.buffer, "its product has no loop over columns");
    }
    TF_RETURN_IF_ERROR(AddColumnLoops(s, sums, /*terms=*/false));
    if (local_.contains(s.a.buffer)) {
      if (!out_.dims.contains(s.a.buffer)) {
        return RefuseBuffer(*s.a.buffer, "its product has no loop over terms");
      }
      TF_RETURN_IF_ERROR(AddColumnLoops(s, s.a, /*terms=*/true));
    }
    return CheckOtherIndices(s);
  }

  absl::Status Check(const QuadStatement& s) {
    // The column of the statement.
    std::optional<QuadAccess> first;
    const QuadAccess written = SumsOf(s);
    const bool writes_column = out_.dims.contains(written.buffer);
    if (writes_column) first = written;
    for (const QuadAccess& load : s.loads) {
      const auto dim = out_.dims.find(load.buffer);
      if (dim == out_.dims.end()) continue;
      if (!first) first = load;
      if (!Same((*load.indices)[dim->second],
                (*first->indices)[out_.dims.at(first->buffer)])) {
        return RefuseBuffer(
            *load.buffer,
            absl::StrCat(
                "the store to ", written.buffer->name,
                " reads another column than ",
                ir::ToString((*first->indices)[out_.dims.at(first->buffer)]),
                ", which other lanes may have"));
      }
    }
    const bool is_local = local_.contains(written.buffer);
    if (!first) {
      out_.roles[s.store] = is_local ? QuadRole::kAlike : QuadRole::kOnce;
      return absl::OkStatus();
    }
    TF_RETURN_IF_ERROR(AddColumnLoops(s, *first, /*terms=*/false));
    if (is_local && !writes_column) {
      out_.roles[s.store] = QuadRole::kReduction;
      const bool reads =
          std::ranges::count(s.loads, written.buffer, &QuadAccess::buffer) > 1;
      if (reads || !AsElementUpdate(*s.store)) {
        return RefuseBuffer(
            *written.buffer,
            "columns are combined into an element that has none, and not by a "
            "sum, product, minimum or maximum of that element alone");
      }
    } else {
      out_.roles[s.store] = QuadRole::kColumns;
      if (!is_local) TF_RETURN_IF_ERROR(CheckApart(s));
    }
    return CheckOtherIndices(s);
  }

  // Whether lanes write elements of their own in memory that they share.
  absl::Status CheckApart(const QuadStatement& s) {
    AccessDims dims;
    for (const Expr& index : s.store->indices) {
      dims.push_back(math_.Decompose(index));
    }
    for (const ForNode* loop : s.loops) {
      if (out_.loops.contains(loop->var.get()) &&
          !Determines(math_, {dims}, loop->var.get(),
                      *ir::AsInt(loop->extent))) {
        return RefuseBuffer(*s.store->buffer,
                            absl::StrCat("lanes would write the same element "
                                         "in different iterations of loop ",
                                         loop->var->name));
      }
    }
    return absl::OkStatus();
  }

  // Other dimensions than that over columns are not indexed by columns.
  absl::Status CheckOtherIndices(const QuadStatement& s) {
    for (const QuadAccess& access : LocalAccesses(s)) {
      const auto dim = out_.dims.find(access.buffer);
      for (size_t d = 0; d < access.indices->size(); ++d) {
        if (dim != out_.dims.end() && dim->second == d) continue;
        for (const ForNode* loop : s.loops) {
          if (!out_.loops.contains(loop->var.get()) ||
              !ir::UsesVar((*access.indices)[d], loop->var.get())) {
            continue;
          }
          return RefuseBuffer(
              *access.buffer,
              absl::StrCat("its index ", ir::ToString((*access.indices)[d]),
                           " uses loop ", loop->var->name,
                           ", which is over columns, in another way than a "
                           "column's number"));
        }
      }
    }
    return absl::OkStatus();
  }

  // The loops of the access's column, which have to be the digits of its
  // number: those of lanes are not sums of several loops.
  absl::Status AddColumnLoops(const QuadStatement& s, const QuadAccess& access,
                              bool terms) {
    const Expr& column = (*access.indices)[out_.dims.at(access.buffer)];
    const Linear form = math_.Decompose(column);
    const auto refuse = [&](const std::string& why) {
      return RefuseBuffer(
          *access.buffer,
          absl::StrCat("its column ", ir::ToString(column), " ", why));
    };
    if (form.constant % kQuadColumns != 0) {
      return refuse("does not begin with one of 8");
    }
    int64_t digits = 0;  // 1: of pairs, 2 and 4: of lanes
    for (const auto& [atom, coefficient] : form.terms) {
      const auto* var = ir::As<ir::VarNode>(atom);
      const ForNode* loop = var == nullptr ? nullptr : s.Loop(var);
      if (loop == nullptr || loop->for_kind == ir::ForKind::kThreadBinding) {
        return refuse("is no sum of loops");
      }
      if (coefficient % kQuadColumns == 0 && coefficient > 0) continue;
      const auto extent = ir::AsInt(loop->extent);
      std::optional<ColumnLoop> part;
      if (extent && ir::IsConstInt(loop->min, 0)) {
        part = Digits(coefficient, *extent);
      }
      if (!part) {
        return refuse(absl::StrCat("depends on loop ", var->name,
                                   " in another way than by digits of 2 and 4 "
                                   "columns"));
      }
      part->terms = terms;
      const int64_t of_loop =
          (part->pair - 1) | (part->lanes - 1) * 2 * part->weight;
      if ((digits & of_loop) != 0) return refuse("has two loops over a digit");
      digits |= of_loop;
      if (terms && part->lanes != ir::kQuadLanes && part->lanes != 1) {
        return refuse("has two loops over the lanes of a quad");
      }
      const auto [known, added] = out_.loops.emplace(var, *part);
      if (!added && known->second != *part) {
        return RefuseLoop(*var, "statements divide it in different ways");
      }
    }
    if ((digits & 6) != 6) return refuse("has no loop over lanes of a quad");
    return absl::OkStatus();
  }

  // Columns 8 * g + 2 * q + p as far as the loop counts them.
  static std::optional<ColumnLoop> Digits(int64_t coefficient, int64_t extent) {
    if (coefficient != 1 && coefficient != 2 && coefficient != 4) {
      return std::nullopt;
    }
    ColumnLoop part{.coefficient = coefficient};
    int64_t rest = extent;
    if (coefficient == 1) {
      part.pair = std::min<int64_t>(rest, 2);
      if (rest % part.pair != 0) return std::nullopt;
      rest /= part.pair;
    }
    part.weight = std::max<int64_t>(coefficient, 2) / 2;
    part.lanes = std::min(rest, ir::kQuadLanes / part.weight);
    if (part.lanes == 3 || rest % part.lanes != 0) return std::nullopt;
    part.groups = rest / part.lanes;
    return part;
  }

  // What a divided loop surrounds has to be about its columns.
  absl::Status CheckLoops(const QuadStatement& s) {
    for (const ForNode* loop : s.loops) {
      const auto divided = out_.loops.find(loop->var.get());
      if (divided == out_.loops.end()) continue;
      const ir::BufferNode& written = *s.store->buffer;
      const QuadRole role = out_.roles.at(s.store);
      bool own = false;
      for (const QuadAccess& access : LocalAccesses(s)) {
        const auto dim = out_.dims.find(access.buffer);
        own |= dim != out_.dims.end() &&
               ir::UsesVar((*access.indices)[dim->second], loop->var.get());
      }
      if (!own || (divided->second.terms && role != QuadRole::kProduct)) {
        return RefuseLoop(*loop->var,
                          absl::StrCat("it is over columns, and a store to ",
                                       written.name, " in it is not"));
      }
      if (loop->for_kind == ir::ForKind::kParallel) {
        return RefuseLoop(*loop->var, "it is parallel");
      }
    }
    return absl::OkStatus();
  }

  const ir::VarNode* const thread_;
  IndexMath math_;
  std::set<const ir::BufferNode*> local_;
  RowQuads out_;
  bool changed_ = false;
};

}  // namespace

Expr RowQuads::OwnIndex(
    IndexMath& math, const Expr& column,
    const std::map<const ir::VarNode*, Parts>& parts) const {
  constexpr int64_t kShare = ir::kQuadLanes;
  const Linear form = math.Decompose(column);
  Expr own = ir::IntConst(form.constant / kShare);
  for (const auto& [atom, coefficient] : form.terms) {
    const auto* var = ir::As<ir::VarNode>(atom);
    const auto divided = loops.find(var);
    if (divided == loops.end()) {
      own = own + atom * (coefficient / kShare);
      continue;
    }
    const ColumnLoop& loop = divided->second;
    const Parts& part = parts.at(var);
    own = own + part.pair +
          part.group * (coefficient * loop.pair * loop.lanes / kShare);
  }
  return own;
}

absl::StatusOr<RowQuads> DivideColumns(const ir::Stmt& body,
                                       const ir::VarNode* thread) {
  return ColumnDivider(thread).Divide(body);
}

}  // namespace tilefarm::lower
