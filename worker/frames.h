// Versioned binary frames, which rpc-worker exchanges with tune-runner and
// tune-builder over their standard input and output. Nothing else is written
// there, so any command prefix that transports a byte stream works.
//
//   offset  bytes  meaning (integers little-endian)
//   0       3      'T' 'F' 'W'
//   3       1      version, kFrameVersion
//   4       4      type (runner_protocol.h, builder_protocol.h)
//   8       8      length of the payload, at most kMaxPayloadBytes
//   16      length payload
//
// Payload fields are those of base/byte_stream.h; a list is its length as u32,
// then its elements. A frame of another version or with other first bytes ends
// the connection.
//
// Knows the C and C++ standard libraries only: tune-runner links nothing else.
#ifndef TILEFARM_WORKER_FRAMES_H_
#define TILEFARM_WORKER_FRAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/byte_stream.h"

namespace tilefarm::worker {

inline constexpr uint8_t kFrameVersion = 6;
inline constexpr size_t kFrameHeaderBytes = 16;
inline constexpr uint64_t kMaxPayloadBytes = uint64_t{256} << 20;

struct Frame {
  uint32_t type = 0;
  std::string payload;
};

enum class FrameStatus {
  kOk,
  kEnd,  // end of input between two frames
  kTimeout,
  kMalformed,  // wrong magic, version or length, or cut short
  kIoError,
};
const char* FrameStatusName(FrameStatus status);

// Reads frames from one descriptor, which may be blocking or not. Memory use
// grows with the bytes that arrive, not with the announced length.
class FrameReader {
 public:
  // Reads exactly one frame, and no byte beyond it. `timeout_ms` < 0: no limit.
  // After kTimeout the next call continues with the same frame.
  FrameStatus Read(int fd, int64_t timeout_ms, Frame* frame);
  // Whether part of a frame was read.
  bool in_frame() const { return !header_.empty(); }

 private:
  std::string header_, payload_;  // the bytes read so far
};

// Reads one frame. After kTimeout nothing more can be read.
FrameStatus ReadFrame(int fd, int64_t timeout_ms, Frame* frame);

// Writes one frame. kTimeout is only possible on a non-blocking descriptor.
// SIGPIPE must be ignored: a closed pipe is kIoError.
FrameStatus WriteFrame(int fd, int64_t timeout_ms, uint32_t type,
                       std::string_view payload);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_FRAMES_H_
