#include "compiler/schedule/primitive_table.h"

namespace tilefarm::schedule {
namespace {

using ir::Attr;

Parameter First(std::string_view name) { return {name, true}; }
Parameter Named(std::string_view name) { return {name}; }
Parameter Named(std::string_view name, Attr value) {
  return {name, false, false, true, std::move(value)};
}
Parameter Rest(std::string_view name) { return {name, true, true}; }

const Parameter kGetBlock[] = {First("name"), Named("func_name", "main")};
const Parameter kBlock[] = {First("block")};
const Parameter kLoop[] = {First("loop")};
const Parameter kBlockOrLoop[] = {First("block_or_loop")};
const Parameter kTile[] = {First("loop"), Named("n"),
                           Named("max_innermost_factor", 16)};
const Parameter kCategorical[] = {Named("candidates"), Named("probs")};
const Parameter kSplit[] = {First("loop"), Named("factors"),
                            Named("preserve_unit_iters", true),
                            Named("disable_predication", false)};
const Parameter kFuse[] = {Rest("loops"), Named("preserve_unit_iters", true)};
const Parameter kReorder[] = {Rest("loops")};
const Parameter kBind[] = {First("loop"), First("thread_axis")};
const Parameter kComputeAt[] = {First("block"), First("loop"),
                                Named("preserve_unit_loops", false),
                                Named("index", -1)};
const Parameter kCacheRead[] = {First("block"), Named("read_buffer_index"),
                                Named("storage_scope"),
                                Named("consumer_blocks", Attr(ir::AttrList()))};
const Parameter kCacheWrite[] = {
    First("block"), Named("write_buffer_index"), Named("storage_scope"),
    Named("consumer_blocks", Attr(ir::AttrList()))};
const Parameter kReindex[] = {First("block"), Named("buffer")};
const Parameter kSetScope[] = {First("block"), Named("buffer_index"),
                               Named("storage_scope")};
const Parameter kStorageAlign[] = {First("block"), Named("buffer_index"),
                                   Named("axis"), Named("factor"),
                                   Named("offset")};
const Parameter kTransformLayout[] = {
    First("block"), Named("buffer"), Named("index_map"),
    Named("pad_value", Attr()), Named("assume_injective_transform", false)};
const Parameter kTransformBlockLayout[] = {First("block"), Named("index_map")};
const Parameter kDecompose[] = {First("block"), First("loop")};
const Parameter kRfactor[] = {First("loop"), Named("factor_axis")};
const Parameter kWinograd[] = {First("block"), Named("tile")};
const Parameter kOnlineSoftmax[] = {First("block"), Named("chunk"),
                                    Named("lanes")};
const Parameter kOnlineProduct[] = {First("block"), Named("tile"),
                                    Named("apart"), Named("chunk")};
const Parameter kPadEinsum[] = {First("block"), Named("padding")};
const Parameter kPadSoftmax[] = {First("block"), Named("padding"),
                                 Named("depth")};
const Parameter kBlockize[] = {First("target"),
                               Named("preserve_unit_iters", true)};
const Parameter kTensorize[] = {First("block_or_loop"), Named("tensor_intrin"),
                                Named("preserve_unit_iters", true)};
const Parameter kCallLibrary[] = {First("block"), Named("kernel")};
const Parameter kAnnotate[] = {First("block_or_loop"), Named("ann_key"),
                               Named("ann_val")};
const Parameter kUnannotate[] = {First("block_or_loop"), Named("ann_key")};

constexpr RvKind kB = RvKind::kBlock;
constexpr RvKind kL = RvKind::kLoop;
constexpr RvKind kE = RvKind::kExpr;

const Primitive kPrimitives[] = {
    {"get_block", "get_sblock", kGetBlock, Outputs::kOne, kB},
    {"get_loops", "", kBlock, Outputs::kMany, kL},
    {"get_producers", "", kBlock, Outputs::kMany, kB},
    {"get_consumers", "", kBlock, Outputs::kMany, kB},
    {"get_child_blocks", "get_child_sblocks", kBlockOrLoop, Outputs::kMany, kB},
    {"sample_perfect_tile", "", kTile, Outputs::kMany, kE, true},
    {"sample_tile", "", kTile, Outputs::kMany, kE, true},
    {"sample_categorical", "", kCategorical, Outputs::kOne, kE, true},
    {"sample_compute_location", "", kBlock, Outputs::kOne, kL, true},
    {"split", "", kSplit, Outputs::kMany, kL, false, true},
    {"fuse", "", kFuse, Outputs::kOne, kL, false, true},
    {"reorder", "", kReorder},
    {"add_unit_loop", "", kBlockOrLoop, Outputs::kOne, kL, false, true},
    {"parallel", "", kLoop, Outputs::kNone, kE, false, true},
    {"vectorize", "", kLoop, Outputs::kNone, kE, false, true},
    {"unroll", "", kLoop, Outputs::kNone, kE, false, true},
    {"bind", "", kBind, Outputs::kNone, kE, false, true},
    {"compute_at", "", kComputeAt},
    {"reverse_compute_at", "", kComputeAt},
    {"compute_inline", "", kBlock},
    {"reverse_compute_inline", "", kBlock},
    {"cache_read", "", kCacheRead, Outputs::kOne, kB},
    {"cache_write", "", kCacheWrite, Outputs::kOne, kB},
    {"reindex", "", kReindex, Outputs::kOne, kB},
    {"set_scope", "", kSetScope},
    {"storage_align", "", kStorageAlign, Outputs::kNone, kE, false, true},
    {"transform_layout", "", kTransformLayout},
    {"transform_block_layout", "", kTransformBlockLayout},
    {"decompose_reduction", "", kDecompose, Outputs::kOne, kB},
    {"rfactor", "", kRfactor, Outputs::kOne, kB},
    {"fission", "", kBlock, Outputs::kMany, kB},
    {"skip_zeros", "", kBlock},
    {"winograd", "", kWinograd, Outputs::kMany, kB},
    {"online_softmax", "", kOnlineSoftmax, Outputs::kMany, kB},
    {"online_product", "", kOnlineProduct, Outputs::kMany, kB},
    {"pad_einsum", "", kPadEinsum},
    {"pad_softmax", "", kPadSoftmax},
    {"blockize", "", kBlockize, Outputs::kOne, kB},
    {"tensorize", "", kTensorize},
    {"call_library", "", kCallLibrary},
    {"annotate", "", kAnnotate, Outputs::kNone, kE, false, true},
    {"unannotate", "", kUnannotate, Outputs::kNone, kE, false, true},
    {"enter_postproc", "", {}},
};

}  // namespace

const Primitive* FindPrimitive(std::string_view name) {
  for (const Primitive& primitive : kPrimitives) {
    if (primitive.name == name ||
        (!primitive.other_name.empty() && primitive.other_name == name)) {
      return &primitive;
    }
  }
  return nullptr;
}

}  // namespace tilefarm::schedule
