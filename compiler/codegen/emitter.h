// Walks lowered statements and emits LLVM IR. Private: has LLVM types.
//
// Values in registers: int64 indices are i64, bool is i1, float16 and bfloat16
// are float (they compute in float32 and round when stored). Vectors are LLVM
// vectors of any lane count, which LLVM splits to the register width.
//
// Every LLVM function under construction is a Frame:
//
//   entry:  allocas, workspace          parallel loop of the parent:
//   body:   the statements          ->  SYMBOL.parallelN(begin, end, buffers
//   exit:   release, ret status             as noalias, captured values)
//
// A parallel loop's body becomes a function of its own. Its buffers are noalias
// parameters, so LLVM can still assume that they do not overlap.
#ifndef TILEFARM_COMPILER_CODEGEN_EMITTER_H_
#define TILEFARM_COMPILER_CODEGEN_EMITTER_H_

#include <cstdint>
#include <functional>
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
#include "compiler/codegen/device_ops.h"
#include "compiler/codegen/expr_facts.h"
#include "compiler/codegen/vector_math.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/stmt.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tilefarm::codegen {

class Emitter {
 public:
  Emitter(llvm::Module& module, const Options& options);

  // Adds `i32 name(ptr noalias...)`, externally visible. Stops at the first
  // error; the module is then unusable.
  absl::Status EmitFunction(const ir::PrimFunc& function,
                            const std::string& name);
  // Adds the four functions for a kernel with layout-free parameters
  // (codegen.h); their names begin with `name`.
  absl::Status EmitPacked(const LoweredFunction& kernel,
                          const std::string& name);
  // Adds a kernel for one thread of a GPU. The device's conventions say how it
  // is called.
  absl::Status EmitKernel(const lower::Kernel& kernel, const std::string& name,
                          DeviceOps& device);

  // Of an index, both ends inclusive.
  struct IndexRange {
    int64_t lo = 0, hi = 0;
    bool Fits(int bits) const {
      const int64_t end = int64_t{1} << (bits - 1);
      return lo >= -end && hi < end;
    }
  };

 private:
  // The addresses that the body of a loop prefetches (ir::kPrefetchBytes).
  struct Prefetch {
    const ir::VarNode* var;
    int64_t bytes;
    // Avoids repeated prefetches of an address in one iteration.
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
  // An operator, or the element type of an address, and the operands.
  using IndexOperation =
      std::tuple<int, llvm::Type*, llvm::Value*, llvm::Value*>;
  struct Frame {
    llvm::Function* function = nullptr;
    llvm::BasicBlock* entry = nullptr;
    llvm::BasicBlock* exit = nullptr;
    llvm::Value* status = nullptr;  // i32 returned at exit
    std::vector<llvm::Value*> workspace;
    std::unordered_map<const ir::VarNode*, llvm::Value*> vars;
    std::unordered_map<const ir::BufferNode*, llvm::Value*> buffers;
    // While the memory in `buffers` is that of another block of the cluster.
    bool reads_cluster = false;
    // The arguments of a GPU's kernel.
    std::vector<std::pair<ir::TensorMap, llvm::Value*>> maps;
    bool in_parallel = false;
    // Masks of the active lanes, innermost last; see EmitIfThenElse.
    std::vector<llvm::Value*> masks;
    // Where one of these does not hold, loads are of the first elements
    // instead; see EmitWithoutBranch.
    std::vector<llvm::Value*> conditions;
    // For loops that prefetch, innermost last.
    std::vector<Prefetch> prefetches;
    // Index arithmetic that was emitted at a point which dominates the
    // insertion point, to be reused, in the order of emission (Known).
    std::map<IndexOperation, llvm::Value*> known;
    std::vector<IndexOperation> known_order;
    // Of indices that are extensions of 32 bits (emit_narrow.cc).
    std::unordered_map<const llvm::Value*, IndexRange> ranges;
    Tile tile;
  };
  // A scope of code that runs conditionally or in a loop. The values emitted in
  // it are not reused after its end.
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

  // --- emit_kernel.cc ---
  llvm::Value* EmitShuffleXor(const ir::MachineOpNode& e);
  llvm::Value* EmitClusterLoad(const ir::MachineOpNode& e);
  // What warps compute with fragments of matrices.
  llvm::Value* EmitFragmentOp(const ir::MachineOpNode& e);
  // False, without code, if the store is not asynchronous, or cannot be: its
  // vector is not aligned or not contiguous.
  bool EmitCopyAsync(const ir::StoreNode& s);
  // Address, where a constant in a GPU's index becomes an offset of its own:
  // LLVM then sees which accesses are neighbours.
  llvm::Value* AddressAt(const ir::Buffer& buffer, const ir::Expr& index);
  // For an access of `lanes` elements at the address.
  void NoteSharedAccess(const ir::Buffer& buffer, llvm::Value* address,
                        int lanes, bool write);
  // Of an access at the index, as far as it is known: that of the elements on a
  // CPU, up to the widest access of a GPU.
  llvm::Align AlignmentOf(const ir::Buffer& buffer,
                          const ir::Expr& index) const;

  // --- emit_narrow.cc ---
  // Of a constant, or an index that is an extension of 32 bits.
  std::optional<IndexRange> NarrowRange(llvm::Value* index) const;
  // These 32 bits, and the index with this range that has them.
  llvm::Value* Narrowed(llvm::Value* index);
  llvm::Value* Extended(llvm::Value* word, IndexRange range);
  // Of indices, an index or i1. Null, without code: not in 32 bits.
  llvm::Value* EmitNarrow(ir::BinaryOp op, llvm::Value* a, llvm::Value* b);
  // Of a loop's counter that has 32 bits; nullopt: it has 64.
  std::optional<IndexRange> CounterRange(llvm::Value* min,
                                         llvm::Value* extent) const;
  // Of any values; indices in 32 bits where they fit.
  llvm::Value* EmitIndexSelect(llvm::Value* condition, llvm::Value* a,
                               llvm::Value* b);

  // --- emit_warpgroup.cc ---
  // False, without code, for other operations.
  bool EmitWarpgroupEffect(const ir::MachineOpNode& e);
  llvm::Value* EmitUniform(const ir::MachineOpNode& e);
  llvm::Value* EmitFragment(const ir::MachineOpNode& e);
  std::vector<llvm::Value*> LanesOf(llvm::Value* vector);
  void EmitCopyBox(const ir::MachineOpNode& e);
  void EmitWarpgroupProduct(const ir::MachineOpNode& e);
  llvm::Value* AddressOf(const ir::Expr& load);
  // Loads the elements at the offsets from a load, and stores what `use` makes
  // of them.
  template <typename Use>
  void WithRegisters(const ir::Expr& load, const std::vector<int64_t>& offsets,
                     Use use);

  // --- emit_stmt.cc ---
  void EmitStmt(const ir::Stmt& stmt);
  void EmitEffect(const ir::Expr& value);
  void EmitFor(const ir::ForNode& loop);
  void EmitIf(const ir::IfNode& branch);
  void EmitAlloc(const ir::AllocNode& alloc);

  // --- emit_streaming.cc ---
  // Finds the parameters that the function never reads.
  void FindStreamable(const ir::PrimFunc& function);
  // Whether the store writes whole contiguous vectors at an aligned index of
  // one of these parameters.
  bool CanStream(const ir::StoreNode& store) const;
  // False, without emitting code, if the loop is not annotated for streaming
  // stores or has no such store.
  bool EmitStreamingLoop(const ir::ForNode& loop);
  void EmitStreamingStore(llvm::Value* value, llvm::Value* address);
  // Makes the streamed stores visible to other threads.
  void EmitStoreFence();

  // --- emit_expr.cc ---
  llvm::Value* Emit(const ir::Expr& expr);
  llvm::Value* EmitLogical(const ir::BinaryNode& e);
  llvm::Value* EmitCondition(const ir::Expr& condition);
  llvm::Value* EmitIfThenElse(const ir::CallNode& e);
  llvm::Value* EmitCall(const ir::CallNode& e);
  llvm::Value* EmitMachineOp(const ir::MachineOpNode& e);
  llvm::Value* EmitLaneReduction(ir::BinaryOp op, ir::DataType dtype,
                                 llvm::Value* vector);
  // To an integer of less than 32 bits: saturates; NaN gives 0.
  llvm::Value* EmitNarrowing(ir::DataType to, llvm::Value* value);
  // The same of values that the integer has.
  llvm::Value* EmitTruncation(ir::DataType to, llvm::Value* value);
  llvm::Value* EmitCast(ir::DataType to, ir::DataType from, llvm::Value* value);
  llvm::Value* EmitConstant(const ir::FloatConstNode& e);

  // --- emit_dot.cc ---
  llvm::Value* EmitDotProduct(const ir::MachineOpNode& e);
  llvm::Value* EmitPairDotProduct(const ir::MachineOpNode& e);
  // A group of 32 bits in each lane.
  llvm::Value* EmitGroups(const ir::LoadNode& load, int lanes);
  llvm::Value* EmitTileProduct(const ir::MachineOpNode& e);
  // Loads a tile whose rows are `apart` bytes apart; the sums of a tile are
  // contiguous.
  llvm::Value* EmitTileLoad(llvm::Value* address, llvm::Value* apart);
  llvm::Value* EmitSums(llvm::Type* vector, llvm::Value* address);
  llvm::Value* EmitInterleave(llvm::Value* a, llvm::Value* b);

  // --- emit_transpose.cc ---
  llvm::Value* EmitTransposed(const ir::MachineOpNode& e);
  // Transposes as many vectors as each has elements, of `bytes` each.
  void Transpose(std::vector<llvm::Value*>& rows, int bytes);

  // --- emit_library.cc ---
  void EmitGemmCall(const ir::MachineOpNode& e);

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
  // The address, or that of the buffer's first element where a condition of the
  // frame does not hold.
  llvm::Value* SafeAddress(const ir::Buffer& buffer, llvm::Value* address);
  // What `emit` makes where the condition holds, and else the other value.
  // Null, without code: it is not made of plain loads alone (HasPlainLoads), or
  // the device has branches instead.
  llvm::Value* EmitWithoutBranch(llvm::Value* condition, bool is_plain,
                                 llvm::Value* otherwise,
                                 const std::function<llvm::Value*()>& emit);
  // The same, but the elements in memory order.
  llvm::Value* EmitStored(const ir::LoadNode& e);
  // emit_strided.cc: lanes that are a few elements apart. Null: they are too
  // far apart, or a target without mask registers has a mask that is not known
  // while compiling.
  llvm::Value* EmitStridedLoad(const ir::Buffer& buffer, const RampForm& ramp,
                               int lanes, llvm::Value* mask);
  void EmitPrefetch(const ir::Buffer& buffer, const ir::Expr& index,
                    llvm::Value* address);
  // At the head of a loop: emits prefetches for ir::kPrefetchLines.
  void EmitPrefetchLines(const ir::ForNode& loop);
  // Whether all variables of the index are defined here and it has no loads.
  bool IsDefined(const ir::Expr& index) const;
  // Into how many caches: LLVM's locality.
  static constexpr int kL2Cache = 2, kAllCaches = 3;
  void EmitPrefetchOf(llvm::Value* address, int64_t bytes_ahead,
                      int caches = kAllCaches);
  // ir::MachineOp::kPrefetch; of other values nothing.
  void EmitPrefetchOp(const ir::Expr& value);
  void EmitStore(const ir::StoreNode& s);
  // What a kernel copies from 16-bit floats to such as they are in memory;
  // null, without code: the store does not copy them.
  llvm::Value* EmitCopied(const ir::StoreNode& s);
  // The update of a maximum or minimum of floats by one instruction, or null.
  llvm::Value* EmitExtreme(const ir::StoreNode& s);
  // All masks of this access as one i1 or vector of `lanes`; null: none.
  llvm::Value* AccessMask(const ir::Expr& predicate, int lanes);
  llvm::Value* Address(const ir::Buffer& buffer, llvm::Value* index);
  // Conversions between the formats of registers and memory.
  llvm::Value* FromMemory(llvm::Value* value, ir::DataType dtype);
  llvm::Value* ToMemory(llvm::Value* value, ir::DataType dtype);
  llvm::Type* MemoryType(ir::DataType dtype);

  // --- helpers ---
  bool Has(target::Capability capability) const {
    return options_.target.Has(capability);
  }
  llvm::Type* RegisterType(ir::DataType dtype);
  llvm::Value* Splat(llvm::Value* value, int lanes);
  // The value of the operation; calls `make` if it was not emitted yet.
  template <typename Make>
  llvm::Value* Known(const IndexOperation& operation, Make make);
  // Emits a block that runs if `condition` (i1) holds. `make` returns one value
  // of a phi, `otherwise` is the other one; both null for no phi.
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
  llvm::IRBuilder<> builder_;
  VectorMath math_;
  Frame* frame_ = nullptr;
  DeviceOps* device_ = nullptr;  // while a kernel is emitted
  std::string function_name_;
  int parallel_loops_ = 0;
  std::set<const ir::BufferNode*> streamable_;
  // Inside a loop annotated for streaming stores: which copy of the loop this
  // is, or that there is one copy with branches on `aligned_`.
  enum class Streaming { kUndecided, kByChoice, kStreamed, kPlain };
  Streaming streaming_ = Streaming::kUndecided;
  const ir::VarNode* aligned_ = nullptr;
  absl::Status status_;
};

// The number of sums in a matrix unit's tile.
inline constexpr int kTileLanes = 256;

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
