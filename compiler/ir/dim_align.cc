#include "compiler/ir/dim_align.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

// The numbers of an annotation's entries: buffer, axis, factor, offset.
absl::StatusOr<std::vector<std::vector<int64_t>>> ReadEntries(
    const BlockNode& block, const Attr& annotation) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "block ", block.name, ": ", kDimAlignKey,
        " must be a list of [buffer, axis, factor, offset], with the factor "
        "positive and nothing negative"));
  };
  const AttrList* list = annotation.AsList();
  if (list == nullptr) return bad();
  std::vector<std::vector<int64_t>> entries;
  for (const Attr& one : *list) {
    const AttrList* numbers = one.AsList();
    if (numbers == nullptr || numbers->size() != 4) return bad();
    std::vector<int64_t>& entry = entries.emplace_back();
    for (const Attr& number : *numbers) {
      const std::optional<int64_t> value = number.AsInt();
      if (!value || *value < 0) return bad();
      entry.push_back(*value);
    }
    if (entry[2] == 0) return bad();
  }
  return entries;
}

}  // namespace

std::optional<std::vector<int64_t>> PaddedStrides(const BufferNode& buffer,
                                                  const Limits& limits) {
  if (!buffer.strides.empty()) return buffer.strides;
  std::vector<int64_t> strides(buffer.shape.size(), 1);
  // The same limit for every stride: nothing below can overflow.
  const __int128 most = limits.max_buffer_bytes / buffer.dtype.bytes();
  __int128 elements = 1;
  for (size_t i = strides.size(); i-- > 0;) {
    for (const auto& align : buffer.dim_align) {
      if (align[0] != static_cast<int64_t>(i)) continue;
      const __int128 factor = align[1], offset = align[2];
      elements += ((offset - elements) % factor + factor) % factor;
    }
    if (elements > most) return std::nullopt;
    strides[i] = static_cast<int64_t>(elements);
    elements *= buffer.shape[i];
    if (elements > most) return std::nullopt;
  }
  return strides;
}

absl::StatusOr<Stmt> ApplyDimAlign(const Stmt& body, const Limits& limits) {
  std::set<const BufferNode*> allocated;
  std::vector<const BlockNode*> annotated;
  PreOrder(body, [&](const Stmt& stmt) {
    if (const auto* block = As<BlockNode>(stmt)) {
      for (const Buffer& buffer : block->allocs) allocated.insert(buffer.get());
      if (block->annotations.contains(kDimAlignKey)) annotated.push_back(block);
    }
    return true;
  });
  std::map<const BufferNode*, std::shared_ptr<BufferNode>> padded;
  for (const BlockNode* block : annotated) {
    auto entries = ReadEntries(*block, block->annotations.at(kDimAlignKey));
    if (!entries.ok()) return entries.status();
    for (const std::vector<int64_t>& entry : *entries) {
      if (entry[0] >= static_cast<int64_t>(block->writes.size())) continue;
      const Buffer& buffer = block->writes[entry[0]].buffer;
      const int64_t axis = entry[1];
      if (!allocated.contains(buffer.get()) || axis >= buffer->ndim()) continue;
      std::shared_ptr<BufferNode>& copy = padded[buffer.get()];
      if (copy == nullptr) copy = std::make_shared<BufferNode>(*buffer);
      std::erase_if(copy->dim_align, [&](const std::vector<int64_t>& align) {
        return align[0] == axis;
      });
      copy->dim_align.push_back({axis, entry[2], entry[3]});
      if (!PaddedStrides(*copy, limits)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "block ", block->name, ": ", kDimAlignKey, " makes ", buffer->name,
            " larger than ", limits.max_buffer_bytes, " bytes"));
      }
    }
  }
  BufferMap replaced;
  for (auto& [buffer, copy] : padded) replaced[buffer] = std::move(copy);
  return ReplaceBuffers(body, replaced);
}

}  // namespace tilefarm::ir
