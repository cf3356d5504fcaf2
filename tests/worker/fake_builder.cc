// A tune-builder for tests: instead of compiling, it returns a library of
// hand-written kernels (argv[1]), or for candidates another one (argv[2]). The
// trace says what to do:
//
//   NAME          succeed with the kernel of that name
//   sleep MS NAME the same, later
//   hang, crash, garbage, invalid, fail
//   stall         begin an answer and never end it
//
// The reference is the oracle of the kernel that the program names.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "worker/builder_protocol.h"
#include "worker/frames.h"

namespace tilefarm::worker {
namespace {

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void Sleep(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

struct Objects {
  std::string oracles;
  std::string candidates;
};

BuildReply Build(const BuildRequest& request, const Objects& objects) {
  BuildReply reply;
  reply.artifact = request.reference ? objects.oracles : objects.candidates;
  reply.code_digest = "digest";
  reply.compile_seconds = 0.25;
  reply.cores = 1;
  if (request.reference) {
    reply.symbol = "oracle_" + request.program;
    BufferSpec input;
    input.elements = 1000;
    input.read = true;
    BufferSpec output = input;
    // The test kernels with this reference.
    input.layout_free = request.program == "packs";
    output.read = false;
    output.written = true;
    output.bounded = true;
    reply.program.buffers = {input, output};
    return reply;
  }
  std::istringstream words(request.trace);
  std::string word;
  words >> word;
  if (word == "sleep") {
    int ms = 0;
    words >> ms >> word;
    Sleep(ms);
  }
  if (word == "hang") Sleep(1000000);
  if (word == "crash") raise(SIGSEGV);
  if (word == "invalid") {
    reply.status = BuildStatus::kInvalidSchedule;
    reply.error = "split: does not fit";
  }
  if (word == "fail") {
    reply.status = BuildStatus::kCompileError;
    reply.error = "cannot";
  }
  reply.symbol = word;
  return reply;
}

int Serve(const Objects& objects) {
  for (;;) {
    Frame frame;
    if (ReadFrame(0, -1, &frame) != FrameStatus::kOk) return 0;
    if (frame.type == static_cast<uint32_t>(BuilderFrame::kHello)) {
      WriteFrame(1, -1, static_cast<uint32_t>(BuilderFrame::kHelloReply),
                 Encode(BuilderHelloReply{"0", "fake"}));
      continue;
    }
    BuildRequest request;
    if (!Decode(frame.payload, &request)) return 2;
    if (request.trace == "garbage") {
      if (write(1, "garbage garbage garbage", 23) < 0) return 1;
      continue;
    }
    if (request.trace == "stall") {
      // The header announces 256 bytes.
      std::string part("TFW?\x68\0\0\0\0\1\0\0\0\0\0\0only a part", 27);
      part[3] = static_cast<char>(kFrameVersion);
      if (write(1, part.data(), part.size()) < 0) return 1;
      Sleep(1000000);
    }
    WriteFrame(1, -1, static_cast<uint32_t>(BuilderFrame::kBuildReply),
               Encode(Build(request, objects)));
  }
}

}  // namespace
}  // namespace tilefarm::worker

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return tilefarm::worker::Serve(
      {tilefarm::worker::ReadFile(argv[1]),
       tilefarm::worker::ReadFile(argv[argc > 2 ? 2 : 1])});
}
