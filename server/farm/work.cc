#include "server/farm/work.h"

namespace tilefarm::farm {

std::string_view PurposeName(Purpose purpose) {
  switch (purpose) {
    case Purpose::kTrial:
      return "trial";
    case Purpose::kBaseline:
      return "baseline";
    case Purpose::kMeasure:
      return "measure";
    case Purpose::kFinalist:
      return "finalist";
    case Purpose::kRemeasure:
      return "remeasure";
    case Purpose::kCompare:
      return "compare";
    case Purpose::kCanary:
      break;
  }
  return "canary";
}

}  // namespace tilefarm::farm
