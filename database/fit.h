// How well a record suits a lookup, apart from its time. Lookups prefer the
// better fit, within one database and among several.
#ifndef TILEFARM_DATABASE_FIT_H_
#define TILEFARM_DATABASE_FIT_H_

#include <compare>

namespace tilefarm::database {

// The step of the fallback order; smaller is better.
enum class Step { kDeviceModel = 0, kMicroarchitecture = 1, kFamily = 2 };

// Compared in the order of the members; the least is the best.
struct Fit {
  bool emulated = false;  // timed on an emulated device
  Step step = Step::kDeviceModel;
  bool other_cores = false;  // tuned for another number of cores
  // Of its target from the wanted one: 0 same key, 1 same cpu, 2 same family.
  int distance = 0;
  bool stale = false;  // made by another compiler

  auto operator<=>(const Fit&) const = default;
};

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_FIT_H_
