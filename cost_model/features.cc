#include "cost_model/features.h"

#include <span>

#include "cost_model/estimate.h"
#include "cost_model/store_features.h"

namespace tilefarm::cost_model {

FeatureRows FeaturesOf(const LoopNest& nest, const target::Target& target) {
  FeatureRows features;
  features.rows = static_cast<int>(nest.stores.size());
  features.values.resize(nest.stores.size() * kColumns);
  const double all_bytes = BytesOf(nest);
  std::span<float> rest = features.values;
  for (const NestStore& store : nest.stores) {
    WriteStoreFeatures(nest, store, all_bytes, target, rest.first(kColumns));
    rest = rest.subspan(kColumns);
  }
  WriteEstimate(features, target);
  return features;
}

FeatureRows ExtractFeatures(const ir::PrimFunc& scheduled,
                            const target::Target& target) {
  return FeaturesOf(BuildLoopNest(scheduled), target);
}

}  // namespace tilefarm::cost_model
