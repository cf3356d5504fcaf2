#include "compiler/graph/printer.h"

#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"

namespace tilefarm::graph {
namespace {

// A Python identifier that no other value has.
std::string FreshName(const std::string& wish, std::set<std::string>& taken) {
  std::string name;
  for (const char c : wish) {
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) {
    name = "v" + name;
  }
  std::string fresh = name;
  for (int i = 1; !taken.insert(fresh).second; ++i) {
    fresh = absl::StrCat(name, "_", i);
  }
  return fresh;
}

std::string Indented(const std::string& text, const std::string& by) {
  std::string result;
  for (const auto line : absl::StrSplit(text, '\n')) {
    if (!line.empty()) absl::StrAppend(&result, by, line);
    result += '\n';
  }
  return result;
}

std::string Tuple(const std::vector<std::string>& parts) {
  return absl::StrCat("(", absl::StrJoin(parts, ", "),
                      parts.size() == 1 ? ",)" : ")");
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {
    std::set<std::string> taken;
    for (const Value& value : graph.values) {
      names_.push_back(
          value.constant != nullptr
              ? absl::StrCat("R.const(", value.type.ToString(), ")")
              : "");
    }
    for (ValueId id : graph.inputs) {
      names_[id] = FreshName(graph.values[id].name, taken);
    }
    for (const Call& call : graph.calls) {
      for (ValueId id : call.outputs) {
        names_[id] = FreshName(graph.values[id].name, taken);
      }
    }
    NameFunctions();
  }

  std::string Functions() const {
    std::string text;
    for (const ir::PrimFunc& function : functions_) {
      absl::StrAppend(&text, ir::Print(function), "\n");
    }
    return text;
  }

  std::string Main() const {
    std::vector<std::string> params, outputs;
    for (ValueId id : graph_.inputs) {
      params.push_back(
          absl::StrCat(names_[id], ": ", graph_.values[id].type.ToString()));
    }
    for (ValueId id : graph_.outputs) outputs.push_back(names_[id]);
    std::string text = absl::StrCat("@R.function\ndef ", graph_.name, "(",
                                    absl::StrJoin(params, ", "), "):\n",
                                    "    with R.dataflow():\n");
    for (size_t i = 0; i < graph_.calls.size(); ++i) {
      const Call& call = graph_.calls[i];
      std::vector<std::string> results, inputs, types;
      for (ValueId id : call.outputs) {
        results.push_back(names_[id]);
        types.push_back(graph_.values[id].type.ToString());
      }
      for (ValueId id : call.inputs) inputs.push_back(names_[id]);
      absl::StrAppend(&text, "        ", absl::StrJoin(results, ", "),
                      " = R.call_tir(", function_of_call_[i], ", ",
                      Tuple(inputs), ", out_sinfo=",
                      types.size() == 1
                          ? types[0]
                          : absl::StrCat("[", absl::StrJoin(types, ", "), "]"),
                      ")", PlaceOf(call), "\n");
    }
    absl::StrAppend(&text, "        R.output(", absl::StrJoin(outputs, ", "),
                    ")\n    return ",
                    outputs.size() == 1 ? outputs[0] : Tuple(outputs), "\n");
    return text;
  }

  std::string Dot() const {
    std::string text = "digraph model {\n  node [shape=box];\n";
    std::map<ValueId, std::string> origin;
    for (ValueId id : graph_.inputs) {
      absl::StrAppend(&text, "  \"", names_[id], "\" [shape=ellipse];\n");
      origin[id] = names_[id];
    }
    for (size_t i = 0; i < graph_.calls.size(); ++i) {
      const Call& call = graph_.calls[i];
      const std::string box = absl::StrCat("call", i);
      absl::StrAppend(&text, "  ", box, " [label=\"", call.op, "\"];\n");
      for (ValueId id : call.inputs) {
        // Constants would hide the structure.
        if (origin.count(id) == 0) continue;
        absl::StrAppend(&text, "  \"", origin[id], "\" -> ", box, " [label=\"",
                        TypeLabel(id), "\"];\n");
      }
      for (ValueId id : call.outputs) origin[id] = box;
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const auto from = origin.find(graph_.outputs[i]);
      if (from == origin.end()) continue;
      absl::StrAppend(&text, "  out", i, " [shape=ellipse];\n  \"",
                      from->second, "\" -> out", i, " [label=\"",
                      TypeLabel(graph_.outputs[i]), "\"];\n");
    }
    return text + "}\n";
  }

 private:
  // Where the call's results are, if they are parts of another one.
  std::string PlaceOf(const Call& call) const {
    std::string text;
    for (ValueId id : call.outputs) {
      const ValueId whole = WholeOf(graph_, id);
      if (whole == id) continue;
      absl::StrAppend(&text, text.empty() ? "  # in " : ", ", names_[whole]);
    }
    return text;
  }
  std::string TypeLabel(ValueId id) const {
    const TensorType& type = graph_.values[id].type;
    return absl::StrCat(type.dtype.ToString(), " [",
                        absl::StrJoin(type.shape, ", "), "]");
  }

  void NameFunctions() {
    std::set<std::string> taken;
    std::map<std::string, std::string> known;  // workload hash -> name
    for (const Call& call : graph_.calls) {
      std::string& name = known[ir::WorkloadHash(*call.function)];
      if (name.empty()) {
        name = FreshName(call.function->name, taken);
        ir::PrimFunc named = *call.function;
        named.name = name;
        named.attrs["global_symbol"] = ir::Attr(name);
        functions_.push_back(std::move(named));
      }
      function_of_call_.push_back(name);
    }
  }

  const Graph& graph_;
  std::vector<std::string> names_;  // per value
  std::vector<ir::PrimFunc> functions_;
  std::vector<std::string> function_of_call_;
};

}  // namespace

std::string Print(const Graph& graph, bool functions) {
  const Printer printer(graph);
  if (!functions) return printer.Main();
  return absl::StrCat("@I.ir_module\nclass Module:\n",
                      Indented(printer.Functions(), "    "),
                      Indented(printer.Main(), "    "));
}

std::string PrintDot(const Graph& graph) { return Printer(graph).Dot(); }

}  // namespace tilefarm::graph
