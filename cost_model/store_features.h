// The feature row of one store. Private to cost_model/.
#ifndef TILEFARM_COST_MODEL_STORE_FEATURES_H_
#define TILEFARM_COST_MODEL_STORE_FEATURES_H_

#include <span>

#include "compiler/target/target.h"
#include "cost_model/loop_nest.h"

namespace tilefarm::cost_model {

// Writes kColumns values. `all_bytes`: BytesOf(nest).
void WriteStoreFeatures(const LoopNest& nest, const NestStore& store,
                        double all_bytes, const target::Target& target,
                        std::span<float> row);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_STORE_FEATURES_H_
