// Walks lowered statements and emits LLVM IR. Private: has LLVM types.
//
// Values in registers: int64 indices as i64; bool as i1; float16 and bfloat16
// as float (they compute in float32 and round when stored). Vectors
// are LLVM vectors of any lane count; LLVM cuts them to the register width.
//
// Every LLVM function under construction is a Frame:
//
//   entry:  allocas, workspace          parallel loop of the parent:
//   body:   the statements          ->  SYMBOL.parallelN(begin, end, buffers
//   exit:   release, ret status             as noalias, captured values)
//
// A parallel loop's body is a function of its own. Its buffers are noalias
// parameters again, so LLVM keeps what it may assume about them.
#ifndef TILEFARM_COMPILER_CODEGEN_EMITTER_H_
#define TILEFARM_COMPILER_CODEGEN_EMITTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/vector_math.h"
#include "compiler/ir/stmt.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tilefarm::codegen {

class Emitter {
 public:
  // `half_hardware`: the cpu converts between half and float. `fuses`: products
  // in sums of vectors are to be fused here, since LLVM's back end does not.
  Emitter(llvm::Module& module, const Options& options, bool half_hardware,
          bool fuses, const VectorIsa& isa);

  // Adds `i32 name(ptr noalias...)`, externally visible. Stops at the first
  // error; the module is then unusable.
  absl::Status EmitFunction(const ir::PrimFunc& function,
                            const std::string& name);
  // The four functions of one with layout-free parameters (codegen.h), whose
  // names begin with `name`.
  absl::Status EmitPacked(const LoweredFunction& kernel,
                          const std::string& name);

 private:
  // The addresses that the body of a loop prefetches (ir::kPrefetchBytes).
  struct Prefetch {
    const ir::VarNode* var;
    int64_t bytes;
    // Each address once an iteration.
    std::set<std::pair<const ir::BufferNode*, std::string>> fetched;
  };
  // The last tile that was read by columns, in memory order.
  struct Tile {
    const ir::BufferNode* buffer = nullptr;
    llvm::BasicBlock* block = nullptr;
    llvm::Value* base = nullptr;  // index of its first element
    llvm::Value* step = nullptr;  // between its rows
    std::vector<llvm::Value*> columns;
  };
  // Operator, or type of the elements of an address, and operands.
  using IndexOperation =
      std::tuple<int, llvm::Type*, llvm::Value*, llvm::Value*>;
  struct Frame {
    llvm::Function* function = nullptr;
    llvm::BasicBlock* entry = nullptr;
    llvm::BasicBlock* exit = nullptr;
    llvm::Value* status = nullptr;  // where i32 is stored before exit
    std::vector<llvm::Value*> workspace;
    std::unordered_map<const ir::VarNode*, llvm::Value*> vars;
    std::unordered_map<const ir::BufferNode*, llvm::Value*> buffers;
    bool in_parallel = false;
    // Masks of the active lanes, innermost last; see EmitIfThenElse.
    std::vector<llvm::Value*> masks;
    // Of the loops that ask for it, innermost last.
    std::vector<Prefetch> prefetches;
    // Index arithmetic that was emitted where it dominates the insertion
    // point, so that it is emitted once, and in which order (Known).
    std::map<IndexOperation, llvm::Value*> known;
    std::vector<IndexOperation> known_order;
    Tile tile;
  };
  // A scope of code that runs conditionally or in a loop. At its end the values
  // that became known in it are forgotten.
  class Nested {
   public:
    explicit Nested(Frame& frame)
        : frame_(frame), outside_(frame.known_order.size()) {}
    ~Nested() {
      while (frame_.known_order.size() > outside_) {
        frame_.known.erase(frame_.known_order.back());
        frame_.known_order.pop_back();
      }
    }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Frame& frame_;
    const size_t outside_;
  };

  // --- emitter.cc: functions and frames ---
  void BeginFrame(Frame& frame, const ir::Stmt& body);
  void EndFrame(Frame& frame);
  void EmitParallel(const ir::ForNode& loop);
  llvm::Function* EmitParallelTask(llvm::Function* body,
                                   llvm::StructType* context);
  llvm::FunctionCallee Runtime(const char* name, llvm::Type* result,
                               std::vector<llvm::Type*> parameters);
  llvm::AllocaInst* EntryAlloca(Frame& frame, llvm::Type* type);

  // --- emit_packed.cc ---
  void EmitWhole(const LoweredFunction& kernel, const std::string& name,
                 const std::vector<llvm::Function*>& packs,
                 llvm::Function* packed);
  void EmitPackedBytes(const LoweredFunction& kernel, const std::string& name);
  void EmitPackEntry(const LoweredFunction& kernel, const std::string& name,
                     const std::vector<llvm::Function*>& packs);

  // --- emit_stmt.cc ---
  void EmitStmt(const ir::Stmt& stmt);
  void EmitFor(const ir::ForNode& loop);
  void EmitIf(const ir::IfNode& branch);
  void EmitAlloc(const ir::AllocNode& alloc);

  // --- emit_streaming.cc ---
  // The parameters that the function never reads.
  void FindStreamable(const ir::PrimFunc& function);
  // Whole vectors side by side, in one of those, where the index is aligned.
  bool CanStream(const ir::StoreNode& store) const;
  // False, without an effect, if the loop does not ask for streaming stores or
  // has no such store.
  bool EmitStreamingLoop(const ir::ForNode& loop);
  void EmitStreamingStore(llvm::Value* value, llvm::Value* address);
  // After it, other threads see the streamed stores.
  void EmitStoreFence();

  // --- emit_expr.cc ---
  llvm::Value* Emit(const ir::Expr& expr);
  llvm::Value* EmitLogical(const ir::BinaryNode& e);
  llvm::Value* EmitCondition(const ir::Expr& condition);
  llvm::Value* EmitIfThenElse(const ir::CallNode& e);
  llvm::Value* EmitCall(const ir::CallNode& e);
  llvm::Value* EmitLaneReduction(ir::BinaryOp op, ir::DataType dtype,
                                 llvm::Value* vector);
  llvm::Value* EmitCast(ir::DataType to, ir::DataType from, llvm::Value* value);
  llvm::Value* EmitConstant(const ir::FloatConstNode& e);

  // --- emit_dot.cc ---
  llvm::Value* EmitDotProduct(const ir::CallNode& e);
  llvm::Value* EmitTileProduct(const ir::CallNode& e);
  // A tile whose rows are `apart` bytes apart; the sums of a tile are
  // contiguous.
  llvm::Value* EmitTileLoad(llvm::Value* address, llvm::Value* apart);
  llvm::Value* EmitSums(llvm::Type* vector, llvm::Value* address);
  llvm::Value* EmitInterleave(llvm::Value* a, llvm::Value* b);

  // --- emit_transpose.cc ---
  llvm::Value* EmitTransposed(const ir::CallNode& e);
  // As many vectors as each has elements, of `bytes` each.
  void Transpose(std::vector<llvm::Value*>& rows, int bytes);

  // --- emit_library.cc ---
  void EmitGemmCall(const ir::CallNode& e);

  // --- emit_arith.cc: dtype-directed arithmetic ---
  llvm::Value* EmitBinary(ir::BinaryOp op, ir::DataType dtype, llvm::Value* a,
                          llvm::Value* b);
  llvm::Value* EmitFused(llvm::Value* product, llvm::Value* other,
                         bool negated);
  llvm::Value* EmitFloatBinary(ir::BinaryOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitIntDivision(ir::BinaryOp op, ir::DataType dtype,
                               llvm::Value* a, llvm::Value* b);

  // --- emit_memory.cc ---
  llvm::Value* EmitLoad(const ir::LoadNode& e);
  // The same, in memory order.
  llvm::Value* EmitStored(const ir::LoadNode& e);
  void EmitPrefetch(const ir::Buffer& buffer, const ir::Expr& index,
                    llvm::Value* address);
  // At the head of a loop: what it asks for with ir::kPrefetchLines.
  void EmitPrefetchLines(const ir::ForNode& loop);
  // All its variables have values here, and it reads no memory.
  bool IsDefined(const ir::Expr& index) const;
  void EmitPrefetchOf(llvm::Value* address, int64_t bytes_ahead);
  void EmitStore(const ir::StoreNode& s);
  // All masks on this access as one i1 or vector of `lanes`; null: none.
  llvm::Value* AccessMask(const ir::Expr& predicate, int lanes);
  llvm::Value* Address(const ir::Buffer& buffer, llvm::Value* index);
  // Between registers and memory.
  llvm::Value* FromMemory(llvm::Value* value, ir::DataType dtype);
  llvm::Value* ToMemory(llvm::Value* value, ir::DataType dtype);
  llvm::Type* MemoryType(ir::DataType dtype);

  // --- helpers ---
  llvm::Type* RegisterType(ir::DataType dtype);
  llvm::Value* Splat(llvm::Value* value, int lanes);
  // The value of the operation, made by `make` where it is not known yet.
  template <typename Make>
  llvm::Value* Known(const IndexOperation& operation, Make make);
  // A block that runs where `condition` (i1) holds. `make` returns the value
  // of a phi whose other side is `otherwise`; both null for none.
  template <typename Make>
  llvm::Value* Guarded(llvm::Value* condition, llvm::Value* otherwise,
                       Make make);
  llvm::BasicBlock* NewBlock(const char* name);
  // Records the first error; returns poison of the type.
  llvm::Value* Fail(absl::Status status, llvm::Type* type);
  void Fail(absl::Status status);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const Options& options_;
  const bool half_hardware_;
  const bool fuses_;
  llvm::IRBuilder<> builder_;
  VectorMath math_;
  Frame* frame_ = nullptr;
  std::string function_name_;
  int parallel_loops_ = 0;
  std::set<const ir::BufferNode*> streamable_;
  // Inside a loop that asks for streaming stores: which copy of the loop this
  // is, or that there is one copy with branches on `aligned_`.
  enum class Streaming { kUndecided, kByChoice, kStreamed, kPlain };
  Streaming streaming_ = Streaming::kUndecided;
  const ir::VarNode* aligned_ = nullptr;
  absl::Status status_;
};

// Sums of a matrix unit's tile.
inline constexpr int kTileLanes = 256;

// An index of the form base + stride * lane, scalars both.
struct RampForm {
  ir::Expr base;
  ir::Expr stride;
};
// Recognises Ramp, Broadcast and their sums and products; nullopt otherwise.
std::optional<RampForm> AsRamp(const ir::Expr& index);

// Whether evaluating the expression touches memory.
bool HasLoad(const ir::Expr& expr);

template <typename Make>
llvm::Value* Emitter::Known(const IndexOperation& operation, Make make) {
  const auto [found, is_new] = frame_->known.try_emplace(operation, nullptr);
  if (is_new) {
    found->second = make();
    frame_->known_order.push_back(operation);
  }
  return found->second;
}

template <typename Make>
llvm::Value* Emitter::Guarded(llvm::Value* condition, llvm::Value* otherwise,
                              Make make) {
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* inside = NewBlock("guarded");
  llvm::BasicBlock* after = NewBlock("after");
  builder_.CreateCondBr(condition, inside, after);
  builder_.SetInsertPoint(inside);
  llvm::Value* value = nullptr;
  {
    const Nested nested(*frame_);
    value = make();
  }
  llvm::BasicBlock* inside_end = builder_.GetInsertBlock();
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
  if (otherwise == nullptr) return nullptr;
  llvm::PHINode* phi = builder_.CreatePHI(otherwise->getType(), 2);
  phi->addIncoming(otherwise, before);
  phi->addIncoming(value, inside_end);
  return phi;
}

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_EMITTER_H_
