// A workload as the runner keeps it. Private to runner.cc and its parts.
#ifndef TILEFARM_WORKER_RUNNER_WORKLOAD_H_
#define TILEFARM_WORKER_RUNNER_WORKLOAD_H_

#include <string.h>

#include <string>
#include <vector>

#include "worker/runner/buffers.h"
#include "worker/runner/device_job.h"
#include "worker/runner/measure.h"
#include "worker/runner/runner.h"
#include "worker/runner/shared_file.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// Inputs of this size are not copied for every candidate, because touching so
// many pages takes longer than measuring.
inline constexpr size_t kInheritedBytes = size_t{4} << 20;

struct Runner::Workload {
  std::string key;
  ProgramSpec program;
  std::vector<GuardedBuffer> inputs;  // of the parameters that are read
  // Memory for packed large layout-free parameters, which every child fills
  // again; empty for other parameters.
  std::vector<GuardedBuffer> packing;
  std::vector<size_t> output_offsets;
  bool has_reference = true;
  Mapping reference;  // outputs at their offsets; private to this process
  // For each output: its bounds, in private memory; null: it is exact. And the
  // root mean square of the bounds.
  std::vector<const char*> bounds;
  std::vector<double> bounds_rms;
  Mapping all_bounds;
  Mapping shared;  // report, first outputs, last outputs
  size_t outputs_bytes = 0;
  // For the child that uses a device (device_job.h), which has no access to the
  // above: the inputs, and the report with the outputs.
  SharedFile device_inputs;
  SharedFile device_results;
  uint64_t serial = 0;
  uint64_t bytes = 0;  // of all the above

  // Clears what a former child wrote and names the parts.
  SharedRun NewRun() {
    SharedRun run;
    run.program = &program;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool large = inputs[i].bytes() >= kInheritedBytes;
      run.inputs.push_back(inputs[i].data());
      run.inherited.push_back(
          large && !program.buffers[i].written ? inputs[i].data() : nullptr);
      SharedRun::Room& room = run.packing.emplace_back();
      if (packing[i].data() == nullptr) continue;
      room.most = packing[i].bytes();
      room.end = static_cast<char*>(packing[i].data()) + room.most;
    }
    run.output_offsets = output_offsets;
    char* base = static_cast<char*>(shared.data());
    const size_t header = Padded(sizeof(ChildReport));
    memset(base, 0, header);
    run.report = reinterpret_cast<ChildReport*>(base);
    run.first_outputs = base + header;
    run.last_outputs = run.first_outputs + outputs_bytes;
    return run;
  }
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_WORKLOAD_H_
