// The parser's class. Its methods are spread over parse_expr.cc (operators),
// parse_call.cc (T.something in expressions), parse_stmt.cc (statements),
// parse_loop.cc, parse_block.cc and parse_old_block.cc (blocks and their
// declarations), parse_buffer.cc (buffers and views of them), parse_types.cc
// (dtypes, attributes) and parser.cc (modules, functions).
//
// A recursive-descent parser that builds IR directly, without a syntax tree.
// limits.max_nesting bounds recursion and the depth of every expression, so
// that later passes may recurse.
#ifndef TILEFARM_COMPILER_IR_PARSER_INTERNAL_H_
#define TILEFARM_COMPILER_IR_PARSER_INTERNAL_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/lexer.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/typing.h"

namespace tilefarm::ir {

class Parser {
 public:
  Parser(const SourceText& source, const Limits& limits,
         std::vector<Token> tokens)
      : source_(source), limits_(limits), tokens_(std::move(tokens)) {}

  absl::StatusOr<IRModule> ParseProgram();

 private:
  // Another name for elements of a buffer: those of a region from `starts` on,
  // or, without starts, all elements in row-major order.
  struct View {
    Buffer base;
    std::vector<Expr> starts;
  };
  // The meaning of a name.
  struct Symbol {
    enum Kind {
      kHandle,
      kBuffer,
      kLoop,
      kBlockVar,
      kLet,
      kUnboundVar,
      kNumber
    } kind;
    Var var;        // kLoop, kBlockVar, kLet, kUnboundVar
    Buffer buffer;  // kBuffer; for a view only its shape is used
    std::shared_ptr<const View> view;
    int64_t min = 0, extent = 0;  // kLoop, kBlockVar
    int block_depth = 0;          // blocks open where it was declared
    size_t param_index = 0;       // kHandle
    Value number;                 // kNumber: of a constant of the module
  };
  // A block that is being parsed.
  struct BlockState {
    BlockNode node;
    size_t offset = 0;
    int suite_depth = 0;  // of the block's own level
    bool is_root = false;
    bool explicit_root = false;
    bool has_reads = false, has_writes = false, has_predicate = false;
    bool reduce_starts_vary = false;
    bool regions_unknown = false;  // T.reads or T.writes name a flat view
  };
  struct FunctionState {
    PrimFunc func;
    std::vector<Buffer> params;  // null until a handle is matched
    std::vector<std::string> param_names;
    // Names of blocks in the text, and names that were assigned.
    std::unordered_set<std::string> given_names, used_names;
    std::unordered_map<std::string, int> suffixes;
  };
  // A call's name: "T.axis.spatial" is "axis.spatial", "T.max" is "max".
  struct Callee {
    std::string name;
    bool prefixed = false;  // it had a prefix: T., tir., ...
    size_t offset = 0;
    // The dtype= among the arguments, set by ParseArgs.
    std::optional<DataType> dtype = std::nullopt;
    size_t dtype_offset = 0;
  };
  // A let whose body is the rest of its suite.
  struct PendingLet {
    Var var;
    Expr value;
    size_t start;
  };

  // The arguments of a buffer declaration.
  struct BufferArgs {
    std::optional<std::vector<int64_t>> shape;
    std::optional<DataType> dtype;
    std::string data;  // the buffer whose memory it uses; empty: its own
    std::optional<std::vector<int64_t>> strides;
    std::optional<int64_t> elem_offset;
    std::string scope = "global";
    size_t offset = 0, data_offset = 0;
  };
  struct Access {
    Buffer buffer;
    std::vector<Expr> indices;
  };

  struct LoopRange {
    int64_t min = 0, extent = 0;
    Expr stop;  // if not constant; `extent` is then the largest
  };

  // --- Tokens (parser.cc) ---
  const Token& Peek(size_t ahead = 0) const {
    const size_t i = at_ + ahead;
    return tokens_[i < tokens_.size() ? i : tokens_.size() - 1];
  }
  std::string_view Text(size_t ahead = 0) const {
    return source_.Of(Peek(ahead));
  }
  bool AtOp(std::string_view op, size_t ahead = 0) const {
    return Peek(ahead).kind == TokenKind::kOp && Text(ahead) == op;
  }
  bool AtName(std::string_view name, size_t ahead = 0) const {
    return Peek(ahead).kind == TokenKind::kName && Text(ahead) == name;
  }
  bool TryOp(std::string_view op);
  bool TryName(std::string_view name);
  absl::Status Expect(std::string_view op, std::string_view where);
  absl::Status ExpectLineEnd();
  absl::StatusOr<std::string> ExpectName(std::string_view what);
  absl::StatusOr<std::string> ExpectString(std::string_view what);
  // Takes "NAME=" of an argument with one of these names.
  bool TryKeyword(std::initializer_list<std::string_view> names);
  // Takes the end of a list item: an error unless a comma or `close` follows.
  absl::Status NextItem(std::string_view close);
  void SkipLine();
  // Skips to the token after the bracket that closes the one at `at_`.
  void SkipBrackets();
  absl::Status Error(size_t offset, std::string_view message) const {
    return source_.Error(offset, message);
  }
  absl::Status ErrorHere(std::string_view message) const {
    return Error(Peek().offset, message);
  }
  // Adds a position to a status without one.
  absl::Status At(size_t offset, const absl::Status& status) const;
  template <typename T>
  absl::StatusOr<T> At(size_t offset, absl::StatusOr<T> value) const {
    if (value.ok()) return value;
    return At(offset, value.status());
  }
  std::string Found() const;  // the current token, for messages

  // --- Names (parser.cc) ---
  absl::Status Declare(const std::string& name, size_t offset, Symbol symbol);
  size_t ScopeMark() const { return declared_.size(); }
  void CloseScope(size_t mark);
  const Symbol* Lookup(std::string_view name) const;
  // NAME(.NAME)* that is not a variable.
  absl::StatusOr<Callee> ParseCallee();
  static bool IsPrefix(std::string_view name);

  // --- Modules and functions (parser.cc) ---
  absl::Status ParseNumbers();
  absl::Status NoProgram() const;
  absl::Status ParseTopLevel(IRModule& module);
  absl::Status ParseDecorator(std::string& kind);
  // Whether the next line that is not a decorator starts a class.
  bool ClassFollows() const;
  absl::Status ParseClass(IRModule& module);
  absl::Status ParseFunction(IRModule& module);
  absl::Status ParseParameters();
  absl::StatusOr<Attr> ParseAttr(int depth);
  absl::StatusOr<AttrMap> ParseAttrMap(int depth = 0);
  absl::StatusOr<DataType> ParseDType();

  // --- Buffers (parse_buffer.cc) ---
  absl::StatusOr<Buffer> ParseBufferType(const std::string& name);
  // "shape, dtype, ...)".
  absl::StatusOr<BufferArgs> ParseBufferArgs();
  absl::Status ParseBufferArg(std::string_view key, BufferArgs& args);
  absl::StatusOr<int64_t> ParseDimension();
  absl::StatusOr<std::vector<int64_t>> ParseShape();
  absl::StatusOr<std::vector<int64_t>> ParseStrides();
  absl::StatusOr<Buffer> BufferOf(std::string name, const BufferArgs& args);
  absl::Status DeclareBuffer(const std::string& name, size_t offset,
                             Buffer buffer,
                             std::shared_ptr<const View> view = nullptr);
  // Allocates memory in the innermost open block.
  absl::Status Allocate(const std::string& name, size_t offset,
                        const BufferArgs& args);
  absl::Status ParseAllocBuffer(const std::string& name, size_t offset);
  absl::Status ParseAllocate(const std::string& name, size_t offset);
  absl::Status ParseDeclBuffer(const Callee& callee, const std::string& name,
                               size_t offset);
  absl::Status ParseMatchBuffer(const std::string& name, size_t offset);
  absl::Status ParseMatchRegion(const std::string& name, size_t offset);
  absl::Status ParsePreflattened();
  // "[i, j + 1]": the element of the buffer itself, even if the name is a view;
  // raises `depth` to that of the indices.
  absl::StatusOr<Access> ParseAccess(const Symbol& symbol, int* depth);

  // --- Statements (parse_stmt.cc) ---
  // ": NEWLINE INDENT statements DEDENT", or one statement on the line.
  absl::StatusOr<Stmt> ParseSuite();
  // Statements up to the dedent or the end of the file.
  absl::StatusOr<Stmt> ParseStatements();
  absl::Status ParseStatement(std::vector<Stmt>& out,
                              std::vector<PendingLet>& lets);
  // parse_loop.cc
  absl::StatusOr<Stmt> ParseFor();
  absl::StatusOr<Stmt> ParseIf();
  absl::Status ParseAssignment(std::vector<Stmt>& out,
                               std::vector<PendingLet>& lets);
  absl::StatusOr<Stmt> ParseStoreStatement();
  absl::Status ParseLet(std::vector<PendingLet>& lets, size_t stmts);
  absl::Status ParseCallStatement(std::vector<Stmt>& out);
  absl::Status ParseWith(std::vector<Stmt>& out);
  absl::Status ParseWithLet(std::vector<Stmt>& out, size_t offset);
  static bool IsBufferDeclaration(std::string_view name);
  absl::Status ParseBufferDeclaration(const Callee& callee,
                                      const std::string& name, size_t offset);
  absl::Status ParseUnboundVar(const std::string& name, size_t offset);
  Symbol BindVar(const std::string& name);
  // "condition, message".
  absl::Status ParseAssertion(size_t offset);
  // Whether the condition holds for all values of loops and axes in scope.
  bool Holds(const Expr& condition) const;
  absl::Status CountNode();
  absl::Status EnterStatement(size_t offset, int levels = 1);
  absl::StatusOr<AttrMap> ParseLoopArgs(const Callee& callee,
                                        std::vector<Expr>& bounds,
                                        std::string& thread);
  absl::StatusOr<std::string> ParseThreadTag();
  absl::StatusOr<Expr> ParseBound();
  // Inclusive bounds over the loops and axes in scope.
  absl::StatusOr<std::pair<int64_t, int64_t>> ConstBounds(
      const Expr& expr) const;
  absl::StatusOr<LoopRange> RangeOf(const Expr& begin, const Expr& end) const;

  // --- Blocks (parse_block.cc) ---
  absl::StatusOr<Stmt> ParseBlock(size_t offset);
  absl::Status ParseRootBlock(std::vector<Stmt>& out, size_t offset);
  absl::Status ParseInit(size_t offset);
  // `iters`: output for domains before the name, as in TVM 0.8; null for a
  // block without domains.
  absl::Status ParseBlockName(std::string& name, std::vector<IterVar>* iters);
  absl::Status ParseOldDomains(std::vector<IterVar>& iters);
  absl::Status ParseOldNames(const std::vector<IterVar>& iters);
  absl::Status ParseBind();
  std::vector<Var> LoopsOfBlock() const;
  absl::Status CompleteBindings(const std::vector<Var>& loops,
                                BlockState& state, std::vector<IterVar>& made);
  absl::Status ParseAxisAssignment(const std::vector<std::string>& names,
                                   const std::vector<size_t>& offsets,
                                   const Callee& callee);
  absl::Status ParseAxis(const std::string& name, size_t name_offset,
                         IterType type);
  absl::Status CheckAxisDomain(const std::string& name, int64_t min,
                               int64_t extent, size_t offset) const;
  absl::StatusOr<Expr> ParseBinding();
  absl::Status ParseIndexDType();
  absl::Status ParseRemap(const std::vector<std::string>& names,
                          const std::vector<size_t>& offsets);
  absl::Status AddIter(const std::string& name, size_t offset, IterVar iter);
  absl::Status ParseRegions(bool reads);
  // nullopt for a view in row-major order, whose regions are not boxes.
  absl::StatusOr<std::optional<BufferRegion>> ParseRegion();
  static std::optional<BufferRegion> OfBase(BufferRegion region,
                                            const View* view);
  absl::Status ParseWhere();
  absl::Status ParseBlockAttr();
  absl::Status ParseFuncAttr();
  // An error unless the current statement is directly in a block.
  absl::Status RequireBlockLevel(size_t offset, std::string_view what) const;
  // The given name, with a suffix if the function already uses it.
  std::string UniqueBlockName(const std::string& name);

  // --- Expressions (parse_expr.cc) ---
  absl::StatusOr<Value> ParseExpr();
  absl::StatusOr<Value> ParseBinary(int min_precedence);
  absl::StatusOr<Value> ParseNot();
  absl::StatusOr<Value> ParseComparison();
  absl::StatusOr<Value> ParseUnary();
  absl::StatusOr<Value> ParsePower();
  absl::StatusOr<Value> ParsePrimary();
  absl::StatusOr<Value> ParseOperand();
  absl::StatusOr<Value> ParseNumber(bool negative);
  absl::StatusOr<Value> ParseName();
  absl::StatusOr<Value> ParseLoad(const Symbol& symbol, size_t offset);
  // "[i, j + 1]" for a buffer: checks rank, dtype and constant indices; raises
  // `depth` to the tree's.
  absl::StatusOr<std::vector<Expr>> ParseIndices(const Buffer& buffer,
                                                 int* depth);
  absl::StatusOr<Expr> ParseCondition(std::string_view what);
  absl::StatusOr<int64_t> ParseConstInt(std::string_view what);
  absl::StatusOr<Value> Checked(absl::StatusOr<Value> value, size_t offset);
  absl::Status CheckConstIndex(const Expr& index, int64_t low, int64_t high,
                               const Buffer& buffer, int dim,
                               size_t offset) const;

  // --- Calls (parse_call.cc) ---
  absl::StatusOr<Value> ParseCall(Callee callee);
  absl::StatusOr<Value> ParseCallOf(Callee& callee);
  absl::StatusOr<std::vector<Value>> ParseArgs(Callee& callee, int count);
  absl::StatusOr<Value> WithDType(const Callee& callee, Value value);
  absl::StatusOr<Value> ParseTypedLiteral(const Callee& callee, DataType dtype);
  absl::StatusOr<Value> ParseCastCall(const Callee& callee);
  absl::StatusOr<Value> ParseLetExpr(const Callee& callee);
  absl::StatusOr<Value> ParseOldLetExpr(const Callee& callee);
  static bool IsLoweredOnly(std::string_view name);
  absl::Status UnknownCall(const Callee& callee) const;

  const SourceText& source_;
  const Limits& limits_;
  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int64_t nodes_ = 0;
  int loops_ = 0;
  int suite_depth_ = 0;      // indented suites that are open
  int statement_depth_ = 0;  // loops, blocks, ifs and lets that are open
  // Describes a context where names must be numbers: shapes, extents.
  std::string_view static_context_ = {};
  bool static_allows_vars_ = false;  // but loops and axes may occur
  bool in_binding_ = false;  // axis bindings and T.where may use the loops
  std::unordered_map<std::string, Symbol> symbols_;
  std::vector<std::string> declared_;
  FunctionState* function_ = nullptr;
  std::vector<BlockState*> blocks_;  // innermost last
};

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_PARSER_INTERNAL_H_
