#include "worker/runner/device_job.h"

#include "worker/runner/measure.h"

namespace tilefarm::worker {

std::string Encode(const DeviceJob& job) {
  ByteWriter out;
  out.U64(job.workload);
  out.Str(Encode(job.program));
  out.Str(Encode(job.request));
  return out.Take();
}

bool Decode(std::string_view payload, DeviceJob* job) {
  ByteReader in(payload);
  job->workload = in.U64();
  const std::string program = in.Str();
  const std::string request = in.Str();
  return in.Finished() && Decode(program, &job->program) &&
         Decode(request, &job->request);
}

DeviceLayout::DeviceLayout(const ProgramSpec& program)
    : report_bytes(Padded(sizeof(ChildReport))) {
  for (const BufferSpec& spec : program.buffers) {
    const size_t bytes = Padded(spec.elements * ElementBytes(spec.type));
    inputs.push_back(inputs_bytes);
    if (spec.read) inputs_bytes += bytes;
    if (!spec.written) continue;
    outputs.push_back(outputs_bytes);
    outputs_bytes += bytes;
  }
}

}  // namespace tilefarm::worker
