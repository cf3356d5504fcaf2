#include "compiler/lower/split_prepack.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/layout_free.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::As;

constexpr int64_t kAlignment = 64;

struct Uses : ir::Visitor {
  std::set<const ir::BufferNode*> reads, writes;
  std::vector<const ir::BlockNode*> prepacks;
  int blocks = 0;
  using Visitor::Visit;

  bool Accesses(const ir::BufferNode* buffer) const {
    return reads.contains(buffer) || writes.contains(buffer);
  }

 protected:
  void VisitLoad(const ir::LoadNode& load) override {
    reads.insert(load.buffer.get());
    Visitor::VisitLoad(load);
  }
  void VisitStore(const ir::StoreNode& store) override {
    writes.insert(store.buffer.get());
    Visitor::VisitStore(store);
  }
  void VisitBlock(const ir::BlockNode& block) override {
    ++blocks;
    if (block.annotations.contains(ir::kPrepack)) prepacks.push_back(&block);
    Visitor::VisitBlock(block);
  }
};

std::vector<ir::Stmt> Statements(const ir::Stmt& body) {
  const auto* seq = As<ir::SeqNode>(body);
  return seq != nullptr ? seq->stmts : std::vector<ir::Stmt>{body};
}

absl::Status Bad(const ir::BlockNode& block, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("block \"", block.name, "\" (", ir::kPrepack, ") ", why));
}

int64_t PackedBytes(const ir::BufferNode& buffer) {
  const int64_t bytes = buffer.memory_elements() * buffer.dtype.bytes();
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Whether the buffer of 16-bit floats may become float32 in the statement:
// every load is widened at once, and stores copy without arithmetic.
bool MayBeFloat32(const ir::Stmt& stmt, const ir::BufferNode* buffer) {
  int loads = 0, widened = 0;
  bool copies = true;
  const auto is_load = [&](const ir::Expr& e) {
    const auto* load = As<ir::LoadNode>(e);
    return load != nullptr && load->buffer.get() == buffer;
  };
  ir::PostOrderExprs(stmt, [&](const ir::Expr& e) {
    loads += is_load(e);
    const auto* cast = As<ir::CastNode>(e);
    widened += cast != nullptr && cast->dtype == ir::DataType::Float(32) &&
               is_load(cast->value);
  });
  ir::PreOrder(stmt, [&](const ir::Stmt& at) {
    const auto* store = As<ir::StoreNode>(at);
    copies &= store == nullptr || store->buffer.get() != buffer ||
              store->value->kind == ir::ExprKind::kLoad;
    return true;
  });
  return copies && loads == widened;
}

// Replaces `from`, of 16-bit floats, by `to`, of float32.
class Float32Copy : public ir::Mutator {
 public:
  Float32Copy(const ir::BufferNode* from, ir::Buffer to)
      : from_(from), to_(std::move(to)) {}
  using Mutator::Mutate;

 protected:
  ir::Buffer MutateBuffer(const ir::Buffer& buffer) override {
    return buffer.get() == from_ ? to_ : buffer;
  }
  ir::Expr MutateCast(const ir::CastNode& e, const ir::Expr& self) override {
    const auto* load = As<ir::LoadNode>(e.value);
    if (load == nullptr || load->buffer.get() != from_) {
      return Mutator::MutateCast(e, self);
    }
    return ir::Load(to_, MutateAll(load->indices));
  }
  ir::Stmt MutateStore(const ir::StoreNode& s, const ir::Stmt& self) override {
    if (s.buffer.get() != from_) return Mutator::MutateStore(s, self);
    return ir::MakeStore(to_, MutateAll(s.indices),
                         ir::MakeCast(to_->dtype, Mutate(s.value)),
                         s.predicate);
  }

 private:
  const ir::BufferNode* from_;
  const ir::Buffer to_;
};

// The buffer as a parameter: without the padding of storage_align, which is for
// the function's own buffers; as float32 if the block says so.
ir::Buffer AsParameter(const ir::Buffer& buffer, bool float32) {
  if (buffer->dim_align.empty() && !float32) return buffer;
  auto made = std::make_shared<ir::BufferNode>(*buffer);
  made->dim_align.clear();
  if (float32) made->dtype = ir::DataType::Float(32);
  return made;
}

// Makes a function of the statement, which reads `from` and writes `to`.
ir::PrimFuncPtr PackFunction(const std::string& name, const ir::Stmt& nest,
                             const ir::Buffer& from, const ir::Buffer& to) {
  ir::BlockNode root;
  root.name = "root";
  root.predicate = ir::BoolConst(true);
  root.body = nest;
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = name;
  function->params = {from, to};
  function->body = ir::BlockOf(std::move(root));
  return function;
}

class Splitter {
 public:
  explicit Splitter(const ir::PrimFunc& function) : function_(function) {}

  absl::StatusOr<PrepackSplit> Run() {
    TF_RETURN_IF_ERROR(ir::CheckLayoutFree(function_));
    TF_ASSIGN_OR_RETURN(const std::vector<int> params,
                        ir::LayoutFreeParams(function_));
    for (const int param : params) {
      split_.params.push_back(
          {param, PackedBytes(*function_.params[static_cast<size_t>(param)]),
           nullptr});
    }
    const ir::BlockNode* root = function_.root();
    if (root == nullptr) {
      return absl::InvalidArgumentError(
          "only a function in block form can be split");
    }
    statements_ = Statements(root->body);
    for (const ir::Stmt& stmt : statements_) uses_.emplace_back().Visit(stmt);
    auto packed = std::make_shared<ir::PrimFunc>(function_);
    packed->attrs.erase(ir::kLayoutFreeBuffers);
    ir::BlockNode rest = *root;
    std::vector<ir::Stmt> kept;
    ir::BufferMap dense;
    std::vector<std::pair<ir::Buffer, ir::Buffer>> widened;
    for (size_t i = 0; i < statements_.size(); ++i) {
      if (uses_[i].prepacks.empty()) {
        kept.push_back(statements_[i]);
        continue;
      }
      TF_ASSIGN_OR_RETURN(const Nest nest, CheckNest(i));
      const ir::Buffer from = packed->params[static_cast<size_t>(nest.param)];
      const ir::Buffer to = AsParameter(nest.to, nest.float32);
      ir::Stmt pack = statements_[i];
      if (nest.float32) {
        widened.emplace_back(nest.to, to);
        pack = Float32Copy(nest.to.get(), to).Mutate(pack);
      } else if (to != nest.to) {
        dense[nest.to.get()] = to;
      }
      packed->params[static_cast<size_t>(nest.param)] = to;
      const auto gone = [&](const ir::BufferRegion& region) {
        return region.buffer == from || region.buffer == nest.to;
      };
      std::erase_if(rest.reads, gone);
      std::erase_if(rest.writes, gone);
      std::erase(rest.allocs, nest.to);
      for (PackedParam& param : split_.params) {
        if (param.param != nest.param) continue;
        param.bytes = PackedBytes(*to);
        param.pack =
            PackFunction(absl::StrCat(function_.name, "_pack_", nest.param),
                         ir::ReplaceBuffers(pack, dense), from, to);
      }
    }
    if (kept.size() == statements_.size()) {
      split_.packed = std::make_shared<ir::PrimFunc>(function_);
      return std::move(split_);
    }
    packed->name += "_packed";
    rest.body = ir::ReplaceBuffers(ir::MakeSeq(std::move(kept)), dense);
    for (const auto& [from, to] : widened) {
      rest.body = Float32Copy(from.get(), to).Mutate(rest.body);
    }
    packed->body = ir::BlockOf(std::move(rest));
    split_.packed = std::move(packed);
    return std::move(split_);
  }

 private:
  struct Nest {
    int param;
    ir::Buffer to;
    bool float32;
  };

  absl::StatusOr<Nest> CheckNest(size_t at) {
    const Uses& uses = uses_[at];
    const ir::BlockNode& block = *uses.prepacks[0];
    if (uses.blocks != 1) {
      return Bad(block, "is not a nest of its own at the root");
    }
    Nest nest{-1, nullptr, block.annotations.contains(ir::kPrepackFloat32)};
    for (const PackedParam& param : split_.params) {
      const ir::Buffer& buffer =
          function_.params[static_cast<size_t>(param.param)];
      if (!uses.reads.contains(buffer.get())) continue;
      nest.param = param.param;
      if (param.pack != nullptr) {
        return Bad(block, absl::StrCat("packs parameter ", buffer->name,
                                       ", which another block packs already"));
      }
    }
    if (nest.param < 0) {
      return Bad(block, "reads no parameter of layout_free_buffers");
    }
    const ir::BufferNode* from =
        function_.params[static_cast<size_t>(nest.param)].get();
    for (const ir::Buffer& buffer : function_.root()->allocs) {
      if (uses.writes.contains(buffer.get())) nest.to = buffer;
    }
    if (nest.to == nullptr || uses.writes.size() != 1) {
      return Bad(block, "must write one buffer of the function's own");
    }
    if (nest.to->scope != "global") {
      return Bad(block, absl::StrCat("writes a buffer of scope \"",
                                     nest.to->scope, "\""));
    }
    for (const ir::BufferNode* read : uses.reads) {
      if (read == from || read == nest.to.get()) continue;
      return Bad(block,
                 absl::StrCat("reads ", read->name, " beside ", from->name));
    }
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (i == at) continue;
      if (uses_[i].Accesses(from)) {
        return Bad(block, absl::StrCat("packs parameter ", from->name,
                                       ", which is also used as it is"));
      }
      if (uses_[i].writes.contains(nest.to.get()) ||
          (i < at && uses_[i].reads.contains(nest.to.get()))) {
        return Bad(block, absl::StrCat("makes ", nest.to->name,
                                       ", which is written or read before"));
      }
    }
    if (nest.float32 && (!IsHalf(nest.to->dtype) ||
                         !std::all_of(statements_.begin(), statements_.end(),
                                      [&](const ir::Stmt& stmt) {
                                        return MayBeFloat32(stmt,
                                                            nest.to.get());
                                      }))) {
      return Bad(block, absl::StrCat("makes ", nest.to->name, ", which is to ",
                                     "be float32 (", ir::kPrepackFloat32,
                                     "), of other than 16-bit floats that are "
                                     "copied and read as float32"));
    }
    return nest;
  }

  const ir::PrimFunc& function_;
  std::vector<ir::Stmt> statements_;
  std::vector<Uses> uses_;
  PrepackSplit split_;
};

}  // namespace

absl::StatusOr<PrepackSplit> SplitPrepack(const ir::PrimFunc& function) {
  return Splitter(function).Run();
}

}  // namespace tilefarm::lower
