// What a worker reads of its server, its helpers and its disk, made out of
// bytes. Each target returns what was violated; empty: nothing.
#ifndef TILEFARM_TESTS_FUZZ_WORKER_TARGETS_H_
#define TILEFARM_TESTS_FUZZ_WORKER_TARGETS_H_

#include <memory>
#include <string>

#include "tests/fuzz/byte_source.h"
#include "tests/support/process.h"
#include "tests/worker/fake_farm.h"
#include "worker/worker.h"

namespace tilefarm::fuzz {

// A whole worker in this process, whose builder hands out test kernels, and
// the farm that it is connected to.
class WorkerTarget {
 public:
  WorkerTarget();
  ~WorkerTarget();

  // A sequence of messages of the server; the worker measures a good lease
  // after it.
  std::string ServerStream(ByteSource& source);

 private:
  testing::TempDir directory_;
  worker::FakeFarm farm_;
  std::unique_ptr<worker::Worker> worker_;
  int conversations_ = 0;
};

// Payloads of frames of runner and builder: what decodes encodes again to
// something that decodes.
std::string FramePayloads(ByteSource& source);
// A state directory: whole results are taken, anything else is set aside.
std::string SpoolFiles(ByteSource& source);

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_WORKER_TARGETS_H_
