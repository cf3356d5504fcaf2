// All converters. A new table is added here.
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "compiler/onnx/node.h"

namespace tilefarm::onnx {
namespace {

using Key = std::pair<std::string_view, std::string_view>;  // domain, operator

using Table = std::vector<Converter> (*)();

constexpr Table kTables[] = {
    ActivationConverters,
    AttentionConverters,
    BoxConverters,
    CastConverters,
    ConstantConverters,
    ControlFlowConverters,
    ConvolutionConverters,
    CumulativeConverters,
    EinsumConverters,
    ElementwiseConverters,
    FusedContribConverters,
    IndexingConverters,
    LabelConverters,
    LinearAttentionConverters,
    LossConverters,
    MovementConverters,
    NormalizationConverters,
    PaddingConverters,
    PoolingConverters,
    PowerConverters,
    ProductConverters,
    QuantizationConverters,
    QuantizedContribConverters,
    QuantizedProductConverters,
    QuantizedWindowConverters,
    RandomConverters,
    RecurrentConverters,
    ReductionConverters,
    ResamplingConverters,
    SamplingConverters,
    ScatterConverters,
    SelectionConverters,
    SequenceConverters,
    SignalConverters,
    SlicingConverters,
    SoftmaxConverters,
    TrainingConverters,
};

std::map<Key, Convert> AllConverters() {
  std::map<Key, Convert> all;
  for (const Table table : kTables) {
    for (const Converter& converter : table()) {
      const bool added =
          all.emplace(Key(converter.domain, converter.op), converter.convert)
              .second;
      TF_CHECK(added);
    }
  }
  return all;
}

}  // namespace

Convert FindConverter(std::string_view domain, std::string_view op) {
  static const auto* const all = new std::map<Key, Convert>(AllConverters());
  const auto found = all->find({domain, op});
  return found == all->end() ? nullptr : found->second;
}

}  // namespace tilefarm::onnx
