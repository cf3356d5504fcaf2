// Input of a worker from its server, its helpers and its disk, made from bytes.
// Each target returns the violated condition; empty: none.
#ifndef TILEFARM_TESTS_FUZZ_WORKER_TARGETS_H_
#define TILEFARM_TESTS_FUZZ_WORKER_TARGETS_H_

#include <memory>
#include <string>

#include "tests/fuzz/byte_source.h"
#include "tests/support/process.h"
#include "tests/worker/fake_farm.h"
#include "worker/worker.h"

namespace tilefarm::fuzz {

// A whole worker in this process, whose builder returns test kernels, and the
// farm that it is connected to.
class WorkerTarget {
 public:
  WorkerTarget();
  ~WorkerTarget();

  // A sequence of the server's messages; afterwards the worker still measures a
  // good lease.
  std::string ServerStream(ByteSource& source);

 private:
  testing::TempDir directory_;
  worker::FakeFarm farm_;
  std::unique_ptr<worker::Worker> worker_;
  int conversations_ = 0;
};

// Payloads of frames of runner and builder: what is decoded can be encoded and
// decoded again.
std::string FramePayloads(ByteSource& source);
// A state directory: complete results are sent, anything else is set aside.
std::string SpoolFiles(ByteSource& source);

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_WORKER_TARGETS_H_
