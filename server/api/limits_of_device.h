// What limits the time of a program on a device: the lines of its roofline.
#ifndef TILEFARM_SERVER_API_LIMITS_OF_DEVICE_H_
#define TILEFARM_SERVER_API_LIMITS_OF_DEVICE_H_

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::api {

struct Bandwidth {
  std::string level;  // "L2", "L3", "memory"
  double bytes_per_second = 0;
};

struct Roofline {
  double flops = 0;  // of one run
  // Of the parameters, each once: what must be moved whatever the schedule.
  double bytes = 0;
  double clock_hertz = 0;  // that the limits are computed with
  int cores = 1;
  // By vector multiply-adds of the program's element type.
  double peak_flops_per_second = 0;
  std::vector<Bandwidth> bandwidths;  // the fastest first
};

// Limits by typical rates per cycle (cost_model/machine_rates.h) and, of
// multiply-adds, those of the target's core, at this clock: a model, not a
// measurement of the device.
// `clock_hertz` 0, or a GPU: no limits.
Roofline RooflineOf(const ir::PrimFunc& program, const target::Target& target,
                    double clock_hertz);

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_LIMITS_OF_DEVICE_H_
