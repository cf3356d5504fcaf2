#include "compiler/driver/lower_function.h"

#include <utility>

#include "base/status_macros.h"
#include "compiler/lower/pipeline.h"
#include "compiler/lower/split_prepack.h"

namespace tilefarm::driver {

absl::StatusOr<codegen::LoweredFunction> LowerFunction(
    const ir::PrimFunc& function, const std::string& symbol,
    const target::Target& target) {
  TF_ASSIGN_OR_RETURN(const lower::PrepackSplit split,
                      lower::SplitPrepack(function));
  codegen::LoweredFunction lowered;
  lowered.symbol = symbol;
  TF_ASSIGN_OR_RETURN(lowered.function, lower::Lower(*split.packed, target));
  for (const lower::PackedParam& param : split.params) {
    // A device's caller keeps such a parameter as it is; a schedule that packs
    // one is refused there (codegen/device_module.cc).
    if (target.is_gpu() && param.pack == nullptr) continue;
    ir::PrimFuncPtr pack;
    if (param.pack != nullptr) {
      TF_ASSIGN_OR_RETURN(pack, lower::Lower(*param.pack, target));
    }
    const ir::Buffer& source =
        function.params[static_cast<size_t>(param.param)];
    lowered.packed.push_back({param.param,
                              source->memory_elements() * source->dtype.bytes(),
                              param.bytes, std::move(pack)});
  }
  return lowered;
}

}  // namespace tilefarm::driver
