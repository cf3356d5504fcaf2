#include "compiler/ir/layout_free.h"

#include <algorithm>
#include <optional>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {

absl::StatusOr<std::vector<int>> LayoutFreeParams(const PrimFunc& function) {
  const auto found = function.attrs.find(kLayoutFreeBuffers);
  if (found == function.attrs.end()) return std::vector<int>();
  const auto bad = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("function ", function.name, ": ", kLayoutFreeBuffers, " ",
                     why, "; it lists numbers of parameters"));
  };
  const AttrList* list = found->second.AsList();
  if (list == nullptr) return bad("is no list");
  std::set<int> params;
  for (const Attr& item : *list) {
    const bool is_number = std::holds_alternative<int64_t>(item.value);
    const int64_t index = is_number ? *item.AsInt() : -1;
    const auto count = static_cast<int64_t>(function.params.size());
    if (!is_number) return bad("has an entry that is no number");
    if (index < 0 || index >= count) {
      return bad(absl::StrCat("names parameter ", index, " of ", count));
    }
    if (!params.insert(static_cast<int>(index)).second) {
      return bad(absl::StrCat("names parameter ", index, " twice"));
    }
  }
  return std::vector<int>(params.begin(), params.end());
}

bool IsLayoutFree(const PrimFunc& function, const BufferNode* buffer) {
  const auto params = LayoutFreeParams(function);
  return params.ok() &&
         std::any_of(params->begin(), params->end(), [&](int index) {
           return function.params[static_cast<size_t>(index)].get() == buffer;
         });
}

absl::Status CheckLayoutFree(const PrimFunc& function) {
  TF_ASSIGN_OR_RETURN(const std::vector<int> params,
                      LayoutFreeParams(function));
  if (params.empty()) return absl::OkStatus();
  struct Writes : Visitor {
    std::set<const BufferNode*> buffers;
    void VisitStore(const StoreNode& store) override {
      buffers.insert(store.buffer.get());
      Visitor::VisitStore(store);
    }
  } writes;
  writes.Visitor::Visit(function.body);
  for (const int index : params) {
    const Buffer& param = function.params[static_cast<size_t>(index)];
    if (writes.buffers.contains(param.get())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "function ", function.name, ": ", kLayoutFreeBuffers,
          " names parameter ", index, " (", param->name,
          "), which the function writes; only constants can be laid out ahead "
          "of time"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::ir
