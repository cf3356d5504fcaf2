#include "tests/gpu/ptx/ptx_module.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "tests/gpu/ptx/ptx_operations.h"

namespace tilefarm::ptx {
namespace {

// Special registers that a lane has all the time.
const std::map<std::string, Preset, std::less<>>& SpecialRegisters() {
  using Kind = Preset::Kind;
  static const auto* all = [] {
    auto* made = new std::map<std::string, Preset, std::less<>>{
        {"%cluster_ctarank", {Kind::kThread, 4, 24}},
        {"%cluster_nctarank", {Kind::kThread, 4, 25}},
        {"%laneid", {Kind::kLane, 4, 0}},
        // Nobody waits in vain here, see PtxMachine.
        {"%globaltimer", {Kind::kConstant, 8, 0}}};
    uint64_t index = 0;
    for (const char* name :
         {"%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid",
          "%cluster_ctaid", "%cluster_nctaid"}) {
      for (const char* axis : {".x", ".y", ".z"}) {
        (*made)[std::string(name) + axis] = {Kind::kThread, 4, index++, 0};
      }
    }
    return made;
  }();
  return *all;
}

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         c == '$' || c == '%' || c == '.';
}

}  // namespace

Type ParseType(std::string_view text) {
  static const std::map<std::string_view, Type> kTypes = {
      {"pred", {'p', 8}},     {"b8", {'b', 8}},         {"b16", {'b', 16}},
      {"b32", {'b', 32}},     {"b64", {'b', 64}},       {"u8", {'u', 8}},
      {"u16", {'u', 16}},     {"u32", {'u', 32}},       {"u64", {'u', 64}},
      {"s8", {'s', 8}},       {"s16", {'s', 16}},       {"s32", {'s', 32}},
      {"s64", {'s', 64}},     {"f16", {'f', 16}},       {"f32", {'f', 32}},
      {"f64", {'f', 64}},     {"bf16", {'B', 16}},      {"f16x2", {'f', 16, 2}},
      {"tf32", {'t', 32}},    {"bf16x2", {'B', 16, 2}}, {"s16x2", {'s', 16, 2}},
      {"u16x2", {'u', 16, 2}}};
  const auto found = kTypes.find(text);
  return found == kTypes.end() ? Type{} : found->second;
}

// The text is read once; names of a scope "{ }" are its own.
class Parser : public Places {
 public:
  Parser(Module& module, std::string* error)
      : module_(module), error_(error), text_(module.text_) {}

  bool Run() {
    while (SkipSpace(), at_ < text_.size()) {
      if (!Directive()) return false;
    }
    return true;
  }

  uint32_t Place(const Operand& operand, Type type) override {
    switch (operand.kind) {
      case Operand::Kind::kRegister:
        return operand.place;
      case Operand::Kind::kSymbol:
        return AddressOf(operand, type.bytes());
      case Operand::Kind::kSink:
        return Take(8);
      default:
        return PresetPlace(
            {Preset::Kind::kConstant, type.bytes(), operand.value, 0});
    }
  }

  uint32_t Base(const Operand& operand, bool shared, int64_t* offset) override {
    const Operand& base = operand.parts.front();
    *offset = static_cast<int64_t>(operand.value);
    if (base.kind != Operand::Kind::kRegister) {
      return AddressOf(base, shared ? 4 : 8);
    }
    if (base.width != (shared ? 4 : 8)) {
      trouble_ = "unsupported width of the address " + base.name;
    }
    return base.place;
  }

 private:
  struct Name {
    uint32_t place = 0;
    int width = 0;
  };
  struct Scope {
    std::map<std::string, Name, std::less<>> registers;
    std::map<std::string, int, std::less<>> labels;
    std::vector<std::pair<size_t, std::string>> jumps;  // not resolved
  };

  bool Fail(const std::string& what) {
    const auto line =
        1 + std::count(text_.begin(),
                       text_.begin() + static_cast<std::ptrdiff_t>(
                                           std::min(at_, text_.size())),
                       '\n');
    *error_ = "line " + std::to_string(line) + ": " + what;
    return false;
  }

  // Text ----------------------------------------------------------------------

  void SkipSpace() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }
  bool Skip(std::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  // Characters of names, "%tid.x" and ".visible" included.
  std::string_view Word() {
    SkipSpace();
    const size_t begin = at_;
    while (at_ < text_.size() && IsNameCharacter(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  bool Number(int* out) {
    const std::string_view word = Word();
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), *out);
    return error == std::errc() && end == word.data() + word.size();
  }

  // Declarations
  // --------------------------------------------------------------

  bool Directive() {
    const std::string_view word = Word();
    if (word == ".version" || word == ".target" || word == ".address_size") {
      const size_t end = text_.find('\n', at_);
      at_ = std::min(end, text_.size());
      return true;
    }
    if (word == ".visible") return Directive();
    if (word == ".extern") return Variable(/*dynamic=*/true);
    if (word == ".const") {
      at_ -= word.size();
      return Variable(/*dynamic=*/false);
    }
    if (word == ".entry") return Entry();
    return Fail("unsupported directive: " + std::string(word));
  }

  // ".shared .align 1024 .b8 name[256];"; after ".extern" without a size.
  bool Variable(bool dynamic) {
    std::string space;
    int align = 1, bytes = 0;
    std::string_view word;
    Type type;
    while ((word = Word()).starts_with('.')) {
      if (word == ".align") {
        if (!Number(&align)) return Fail("no alignment");
      } else if (const Type found = ParseType(word.substr(1));
                 found.kind != 0) {
        type = found;
      } else {
        space = word;
      }
    }
    const std::string name(word);
    if (Skip("[")) {
      if (!Skip("]") && !(Number(&bytes) && Skip("]"))) {
        return Fail("no size of " + name);
      }
    }
    bytes = std::max(bytes, 1) * type.bytes();
    if (space == ".const") return Constants(name, align, type, bytes);
    if (!Skip(";")) return Fail("no ';' after " + name);
    if (space == ".shared") {
      if (!dynamic) return Fail("unsupported: shared memory of a fixed size");
      symbols_[name] = {Preset::Kind::kConstant, 4, kSharedBase, 0};
      return true;
    }
    if (space == ".local" && kernel_ != nullptr) {
      int& used = kernel_->local_bytes;
      used = (used + align - 1) / align * align;
      symbols_[name] = {Preset::Kind::kConstant, 8,
                        kLocalBase + static_cast<uint64_t>(used), 0};
      used += bytes;
      return true;
    }
    return Fail("unsupported variable: " + space + " " + name);
  }

  // "= {1, 2};"
  bool Constants(const std::string& name, int align, const Type& type,
                 int bytes) {
    std::vector<unsigned char>& all = module_.constants_;
    const auto unit = static_cast<size_t>(align);
    all.resize((all.size() + unit - 1) / unit * unit);
    symbols_[name] = {Preset::Kind::kConstant, 4, kConstantBase + all.size(),
                      0};
    const size_t end = all.size() + static_cast<size_t>(bytes);
    if (type.bytes() != 1 || !Skip("=") || !Skip("{")) {
      return Fail("unsupported: constants without bytes");
    }
    do {
      int byte = 0;
      if (!Number(&byte) || byte > 255) return Fail("no byte of " + name);
      all.push_back(static_cast<unsigned char>(byte));
    } while (Skip(","));
    if (!Skip("}") || !Skip(";") || all.size() > end) {
      return Fail("wrong number of bytes of " + name);
    }
    all.resize(end);
    return true;
  }

  bool Entry() {
    const std::string name(Word());
    kernel_ = &module_.kernels_[name];
    kernel_->constants = &module_.constants_;
    kernel_->name = name;
    scopes_.assign(1, Scope());
    presets_.clear();
    parameters_.clear();
    if (Skip("(")) {
      while (!Skip(")")) {
        if (!ParameterDeclaration()) return false;
        Skip(",");
      }
    }
    while (!Skip("{")) {
      if (!DirectiveOfKernel()) return false;
    }
    while (!scopes_.empty()) {
      if (SkipSpace(), at_ >= text_.size()) return Fail("no end of " + name);
      if (!Statement()) return false;
    }
    kernel_ = nullptr;
    return true;
  }

  // After the parameters.
  bool DirectiveOfKernel() {
    const std::string_view word = Word();
    int n[3] = {1, 1, 1};
    if (word == ".maxntid" || word == ".reqnctapercluster") {
      for (int i = 0; i == 0 || (i < 3 && Skip(",")); ++i) {
        if (!Number(&n[i])) return Fail("no number of " + std::string(word));
      }
      if (word == ".maxntid") {
        kernel_->most_threads = n[0] * n[1] * n[2];
        return true;
      }
      const auto most = static_cast<int>(kMostBlocksOfCluster);
      if (n[0] < 1 || n[0] > most || n[1] != 1 || n[2] != 1) {
        return Fail("unsupported shape of a cluster");
      }
      kernel_->cluster = static_cast<unsigned>(n[0]);
    } else if (word == ".explicitcluster") {
      kernel_->needs_cluster = true;
    } else if (word == ".minnctapersm" || word == ".maxnreg" ||
               word == ".maxclusterrank") {
      if (!Number(&n[0])) return Fail("no number of " + std::string(word));
    } else {
      return Fail("unsupported directive: " + std::string(word));
    }
    return true;
  }

  bool ParameterDeclaration() {
    if (!Skip(".param")) return Fail("no parameter");
    Parameter out;
    int align = 0;
    std::string_view word;
    while ((word = Word()).starts_with('.')) {
      if (word == ".align") {
        if (!Number(&align)) return Fail("no alignment");
      } else {
        out.bytes = ParseType(word.substr(1)).bytes();
      }
    }
    out.name = word;
    int count = 1;
    if (Skip("[") && !(Number(&count) && Skip("]"))) {
      return Fail("no size of " + out.name);
    }
    if (out.bytes == 0) return Fail("unsupported type of " + out.name);
    align = std::max(align, out.bytes);
    out.bytes *= count;
    int& used = kernel_->parameter_bytes;
    used = (used + align - 1) / align * align;
    out.offset = used;
    used += out.bytes;
    parameters_[out.name] = out.offset;
    kernel_->parameters.push_back(std::move(out));
    return true;
  }

  // ".reg .b32 %r<42>;", ".reg .b64 s, t;"
  bool Registers() {
    const Type type = ParseType(Word().substr(1));
    if (type.kind == 0) return Fail("unsupported type of a register");
    do {
      const std::string name(Word());
      int count = 0;
      if (Skip("<")) {
        if (!Number(&count) || !Skip(">")) return Fail("no count of " + name);
      }
      auto& registers = scopes_.back().registers;
      if (count == 0) registers[name] = {Take(type.bytes()), type.bytes()};
      for (int i = 0; i < count; ++i) {
        registers[name + std::to_string(i)] = {Take(type.bytes()),
                                               type.bytes()};
      }
    } while (Skip(","));
    return Skip(";") || Fail("no ';' after registers");
  }

  // Statements
  // ----------------------------------------------------------------

  bool Statement() {
    if (Skip("{")) {
      scopes_.emplace_back();
      return true;
    }
    if (Skip("}")) return CloseScope();
    const size_t begin = at_;
    Instruction out;
    if (Skip("@")) {
      out.negated = Skip("!");
      const std::string_view name = Word();
      const Name* guard = FindRegister(name);
      if (guard == nullptr) return Fail("no predicate " + std::string(name));
      out.guard = guard->place;
    }
    const std::string_view word = Word();
    if (word.empty()) return Fail("unexpected text");
    if (out.guard < 0 && text_.substr(at_, 2) != "::" && Skip(":")) {
      scopes_.back().labels[std::string(word)] =
          static_cast<int>(kernel_->code.size());
      return true;
    }
    if (word == ".reg") return Registers();
    if (word == ".local") {
      at_ = static_cast<size_t>(word.data() - text_.data());
      return Variable(/*dynamic=*/false);
    }
    // "shared::cta" has colons, which names have not.
    std::string opcode(word);
    while (Skip("::")) opcode += "::" + std::string(Word());
    std::vector<Operand> operands;
    while (!Skip(";")) {
      if (!operands.empty() && !Skip(",") && !Skip("|")) {
        return Fail("no ';' after " + opcode);
      }
      std::optional<Operand> operand = ParseOperand();
      if (!operand) return Fail("unsupported operand of " + opcode);
      operands.push_back(std::move(*operand));
    }
    out.text = text_.substr(begin, at_ - begin);
    return Make(opcode, operands, std::move(out));
  }

  bool Make(const std::string& opcode, const std::vector<Operand>& operands,
            Instruction out) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= opcode.size();) {
      const size_t end = std::min(opcode.find('.', begin), opcode.size());
      parts.push_back(opcode.substr(begin, end - begin));
      begin = end + 1;
    }
    std::vector<Instruction>& code = kernel_->code;
    if (parts[0] == "bra") {
      if (operands.size() != 1) return Fail("no target");
      out.control = Control::kBranch;
      scopes_.back().jumps.emplace_back(code.size(), operands[0].name);
    } else if (parts[0] == "ret" || parts[0] == "exit") {
      out.control = Control::kReturn;
    } else if (parts[0] == "trap") {
      out.control = Control::kTrap;
    } else if (!MakeMatrixOperation(parts, operands, *this, out) &&
               !MakeOperation(parts, operands, *this, out)) {
      return Fail("unsupported instruction: " + std::string(out.text));
    }
    if (!trouble_.empty()) {
      return Fail(trouble_ + " in " + std::string(out.text));
    }
    code.push_back(std::move(out));
    return true;
  }

  bool CloseScope() {
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    for (auto& [number, label] : scope.jumps) {
      const auto found = scope.labels.find(label);
      if (found != scope.labels.end()) {
        kernel_->code[number].target = found->second;
      } else if (scopes_.empty()) {
        return Fail("no label " + label);
      } else {
        scopes_.back().jumps.emplace_back(number, label);
      }
    }
    // What falls off the end returns.
    if (scopes_.empty()) {
      kernel_->code.emplace_back().control = Control::kReturn;
      kernel_->code.back().text = "}";
    }
    return true;
  }

  std::optional<Operand> ParseOperand() {
    Operand out;
    if (Skip("{")) {
      out.kind = Operand::Kind::kVector;
      while (!Skip("}")) {
        std::optional<Operand> part = ParseOperand();
        if (!part) return std::nullopt;
        out.parts.push_back(std::move(*part));
        Skip(",");
      }
      return out;
    }
    if (Skip("[")) {
      std::optional<Operand> base = ParseOperand();
      if (!base) return std::nullopt;
      out.kind = Operand::Kind::kAddress;
      if (base->kind == Operand::Kind::kRegister && Skip("+")) {
        std::optional<Operand> offset = ParseOperand();
        if (!offset || offset->kind != Operand::Kind::kConstant) {
          return std::nullopt;
        }
        out.value = offset->value;
      }
      out.parts.push_back(std::move(*base));
      while (Skip(",")) {
        std::optional<Operand> part = ParseOperand();
        if (!part) return std::nullopt;
        out.parts.push_back(std::move(*part));
      }
      if (!Skip("]")) return std::nullopt;
      return out;
    }
    out.negated = Skip("!");
    const bool minus = Skip("-");
    const std::string_view word = Word();
    if (word.empty()) return std::nullopt;
    if (minus || std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
      return Constant(word, minus);
    }
    out.name = word;
    if (word == "_") {
      out.kind = Operand::Kind::kSink;
      return out;
    }
    if (const Name* found = FindRegister(word)) {
      out.place = found->place;
      out.width = found->width;
      return out;
    }
    if (const auto special = SpecialRegisters().find(word);
        special != SpecialRegisters().end()) {
      out.place = PresetPlace(special->second);
      out.width = special->second.width;
      return out;
    }
    out.kind = Operand::Kind::kSymbol;
    if (Skip("+")) {
      const std::optional<Operand> offset = ParseOperand();
      if (!offset || offset->kind != Operand::Kind::kConstant) {
        return std::nullopt;
      }
      out.value = offset->value;  // "+-4" wraps
    }
    return out;
  }

  // "12", "0x1F", "0f3F800000" and "0d...", whose bits are given.
  std::optional<Operand> Constant(std::string_view word, bool minus) {
    Operand out;
    out.kind = Operand::Kind::kConstant;
    int base = 10;
    if (word.starts_with("0f") || word.starts_with("0F") ||
        word.starts_with("0d") || word.starts_with("0D")) {
      out.is_float = true;
      base = 16;
      word.remove_prefix(2);
    } else if (word.starts_with("0x") || word.starts_with("0X")) {
      base = 16;
      word.remove_prefix(2);
    }
    const auto [end, error] = std::from_chars(
        word.data(), word.data() + word.size(), out.value, base);
    const std::string_view rest(
        end, static_cast<size_t>(word.data() + word.size() - end));
    if (error != std::errc() || !(rest.empty() || rest == "U")) {
      return std::nullopt;
    }
    if (minus) out.value = -out.value;
    return out;
  }

  // Places
  // --------------------------------------------------------------------

  uint32_t Take(int width) {
    const uint32_t place = kernel_->file_bytes;
    kernel_->file_bytes += static_cast<uint32_t>(width * kWarpLanes);
    return place;
  }

  uint32_t PresetPlace(Preset preset) {
    const auto key = std::make_tuple(preset.kind, preset.width, preset.value);
    const auto [found, is_new] = presets_.try_emplace(key, 0);
    if (is_new) {
      preset.place = found->second = Take(preset.width);
      kernel_->presets.push_back(preset);
    }
    return found->second;
  }

  uint32_t AddressOf(const Operand& operand, int width) {
    if (const auto known = symbols_.find(operand.name);
        known != symbols_.end()) {
      Preset preset = known->second;
      preset.width = width;
      preset.value += operand.value;
      return PresetPlace(preset);
    }
    if (const auto known = parameters_.find(operand.name);
        known != parameters_.end()) {
      return PresetPlace({Preset::Kind::kParameter, 8,
                          static_cast<uint64_t>(known->second) + operand.value,
                          0});
    }
    trouble_ = "unknown name: " + operand.name;
    return 0;
  }

  const Name* FindRegister(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->registers.find(name);
      if (found != scope->registers.end()) return &found->second;
    }
    return nullptr;
  }

  Module& module_;
  std::string* error_;
  const std::string_view text_;
  size_t at_ = 0;
  Kernel* kernel_ = nullptr;
  std::vector<Scope> scopes_;
  std::string trouble_;  // of the instruction that is being made
  std::map<std::string, Preset, std::less<>> symbols_;
  std::map<std::string, int, std::less<>> parameters_;
  std::map<std::tuple<Preset::Kind, int, uint64_t>, uint32_t> presets_;
};

std::unique_ptr<Module> Module::Parse(std::string_view text,
                                      std::string* error) {
  auto module = std::make_unique<Module>();
  module->text_ = text;
  if (!Parser(*module, error).Run()) return nullptr;
  return module;
}

}  // namespace tilefarm::ptx
