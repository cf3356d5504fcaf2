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
// Payload fields follow each other without padding: u8, u32, u64, i64 (two's
// complement) and f64 (IEEE 754) little-endian; a string is its length as u64,
// then its bytes; a list is its length as u32, then its elements. A frame of
// another version or with other first bytes ends the connection.
//
// Knows the C and C++ standard libraries only: tune-runner links nothing else.
#ifndef TILEFARM_WORKER_FRAMES_H_
#define TILEFARM_WORKER_FRAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tilefarm::worker {

inline constexpr uint8_t kFrameVersion = 4;
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

// Appends payload fields.
class ByteWriter {
 public:
  void U8(uint8_t v) { bytes_.push_back(static_cast<char>(v)); }
  void U32(uint32_t v) { Little(v, 4); }
  void U64(uint64_t v) { Little(v, 8); }
  void I64(int64_t v) { Little(static_cast<uint64_t>(v), 8); }
  void F64(double v);
  void Bool(bool v) { U8(v ? 1 : 0); }
  void Str(std::string_view v);
  std::string Take() { return std::move(bytes_); }

 private:
  void Little(uint64_t v, int bytes);
  std::string bytes_;
};

// Reads payload fields. Reading past the end gives zeros and makes ok() false
// permanently, so a decoder needs a single check at its end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  uint8_t U8() { return static_cast<uint8_t>(Little(1)); }
  uint32_t U32() { return static_cast<uint32_t>(Little(4)); }
  uint64_t U64() { return Little(8); }
  int64_t I64() { return static_cast<int64_t>(Little(8)); }
  double F64();
  bool Bool() { return U8() != 0; }
  std::string Str();
  // The length of a list with elements of at least `element_bytes` each. Fails
  // for a length that does not fit into the rest of the payload.
  uint32_t ListLength(size_t element_bytes);
  bool ok() const { return ok_; }
  // All reads succeeded, and nothing is left.
  bool Finished() const { return ok_ && rest_.empty(); }

 private:
  uint64_t Little(size_t bytes);
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_FRAMES_H_
