#include "compiler/schedule/trace.h"

#include <charconv>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/schedule/primitive_table.h"

namespace tilefarm::schedule {
namespace {

void AppendRv(const Rv& rv, std::string& out) {
  out += rv.kind == RvKind::kBlock ? 'b' : rv.kind == RvKind::kLoop ? 'l' : 'v';
  absl::StrAppend(&out, rv.id);
}

void AppendString(const std::string& text, std::string& out) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += c;
    }
  }
  out += '"';
}

// The shortest text that parses as the same number, and as a float.
void AppendFloat(double value, std::string& out) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + 64, value);
  TF_CHECK(error == std::errc());
  const std::string_view text(buffer, end - buffer);
  out += text;
  if (text.find_first_of(".en") == std::string_view::npos) out += ".0";
}

void AppendAttr(const ir::Attr& attr, std::string& out) {
  struct Printer {
    std::string& out;
    void operator()(std::monostate) const { out += "None"; }
    void operator()(bool v) const { out += v ? "True" : "False"; }
    void operator()(int64_t v) const { absl::StrAppend(&out, v); }
    void operator()(double v) const { AppendFloat(v, out); }
    void operator()(const std::string& v) const { AppendString(v, out); }
    void operator()(const ir::AttrList& list) const {
      out += '[';
      for (size_t i = 0; i < list.size(); ++i) {
        if (i > 0) out += ", ";
        AppendAttr(list[i], out);
      }
      out += ']';
    }
    void operator()(const ir::AttrMap& map) const {
      out += '{';
      for (const auto& [key, value] : map) {
        if (out.back() != '{') out += ", ";
        AppendString(key, out);
        out += ": ";
        AppendAttr(value, out);
      }
      out += '}';
    }
  };
  std::visit(Printer{out}, attr.value);
}

void AppendArg(const Arg& arg, std::string& out) {
  if (const auto* rv = std::get_if<Rv>(&arg.value)) return AppendRv(*rv, out);
  if (const auto* attr = std::get_if<ir::Attr>(&arg.value)) {
    return AppendAttr(*attr, out);
  }
  const auto& list = std::get<ArgList>(arg.value);
  out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ", ";
    AppendArg(list[i], out);
  }
  out += ']';
}

bool IsDefault(const Parameter& parameter, const Arg& arg) {
  const auto* attr = std::get_if<ir::Attr>(&arg.value);
  return parameter.has_default && attr != nullptr &&
         *attr == parameter.default_value;
}

void AppendInstruction(const Instruction& instruction, std::string& out) {
  const Primitive* primitive = FindPrimitive(instruction.primitive);
  TF_CHECK(primitive != nullptr);
  for (size_t i = 0; i < instruction.outputs.size(); ++i) {
    if (i > 0) out += ", ";
    AppendRv(instruction.outputs[i], out);
  }
  if (primitive->outputs == Outputs::kMany && instruction.outputs.size() == 1) {
    out += ',';
  }
  if (!instruction.outputs.empty()) out += " = ";
  absl::StrAppend(&out, "sch.", instruction.primitive, "(");
  bool first = true;
  const auto comma = [&] {
    if (!first) out += ", ";
    first = false;
  };
  for (size_t i = 0; i < instruction.args.size(); ++i) {
    const auto& [name, arg] = instruction.args[i];
    const Parameter& parameter = primitive->parameters[i];
    if (IsDefault(parameter, arg)) continue;
    if (parameter.variadic) {
      for (const Arg& item : std::get<ArgList>(arg.value)) {
        comma();
        AppendArg(item, out);
      }
      continue;
    }
    comma();
    if (!parameter.positional) absl::StrAppend(&out, name, "=");
    AppendArg(arg, out);
  }
  if (instruction.decision != ir::Attr()) {
    comma();
    out += "decision=";
    AppendAttr(instruction.decision, out);
  }
  out += ")\n";
}

}  // namespace

std::string Trace::Print() const {
  std::string out;
  for (const Instruction& instruction : instructions) {
    AppendInstruction(instruction, out);
  }
  return out;
}

std::vector<ir::Attr> Trace::Decisions() const {
  std::vector<ir::Attr> out;
  for (const Instruction& instruction : instructions) {
    if (instruction.is_sample()) out.push_back(instruction.decision);
  }
  return out;
}

absl::Status Trace::SetDecisions(const std::vector<ir::Attr>& decisions) {
  size_t count = 0;
  for (const Instruction& instruction : instructions) {
    count += instruction.is_sample();
  }
  if (count != decisions.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the trace has ", count, " samples, not ", decisions.size()));
  }
  size_t next = 0;
  for (Instruction& instruction : instructions) {
    if (instruction.is_sample()) instruction.decision = decisions[next++];
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
