#include "worker/frames.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/monotonic.h"

namespace tilefarm::worker {
namespace {

constexpr char kMagic[3] = {'T', 'F', 'W'};
constexpr size_t kReadChunk = size_t{64} << 10;  // size of a pipe's buffer

// Waits until `fd` is ready. False: the deadline has passed; a negative one
// never does.
bool WaitReady(int fd, short events, int64_t deadline_ms) {
  for (;;) {
    int64_t wait_ms = -1;
    if (deadline_ms >= 0) {
      wait_ms = std::clamp<int64_t>(deadline_ms - MonotonicMs(), 0, 1 << 30);
    }
    pollfd p{fd, events, 0};
    const int n = poll(&p, 1, static_cast<int>(wait_ms));
    if (n > 0) return true;  // also for errors, which the next call reports
    if (n == 0 && deadline_ms >= 0 && MonotonicMs() >= deadline_ms)
      return false;
    if (n < 0 && errno != EINTR) return true;
  }
}

// Reads until `out` has `size` bytes. kEnd: end of input.
FrameStatus FillTo(int fd, int64_t deadline_ms, size_t size, std::string* out) {
  while (out->size() < size) {
    if (!WaitReady(fd, POLLIN, deadline_ms)) return FrameStatus::kTimeout;
    const size_t done = out->size();
    out->resize(std::min(size, done + kReadChunk));
    const ssize_t n = read(fd, out->data() + done, out->size() - done);
    const int error = errno;
    out->resize(done + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return FrameStatus::kEnd;
    if (n < 0 && error != EINTR && error != EAGAIN) {
      return FrameStatus::kIoError;
    }
  }
  return FrameStatus::kOk;
}

FrameStatus WriteAll(int fd, int64_t deadline_ms, const char* data,
                     size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = write(fd, data + done, size - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      if (!WaitReady(fd, POLLOUT, deadline_ms)) return FrameStatus::kTimeout;
    } else if (errno != EINTR) {
      return FrameStatus::kIoError;
    }
  }
  return FrameStatus::kOk;
}

}  // namespace

const char* FrameStatusName(FrameStatus status) {
  switch (status) {
    case FrameStatus::kOk:
      return "ok";
    case FrameStatus::kEnd:
      return "end of input";
    case FrameStatus::kTimeout:
      return "timed out";
    case FrameStatus::kMalformed:
      return "malformed frame";
    case FrameStatus::kIoError:
      return "broken pipe";
  }
  return "unknown";
}

FrameStatus FrameReader::Read(int fd, int64_t timeout_ms, Frame* frame) {
  const int64_t deadline_ms = timeout_ms < 0 ? -1 : MonotonicMs() + timeout_ms;
  FrameStatus status = FillTo(fd, deadline_ms, kFrameHeaderBytes, &header_);
  if (status == FrameStatus::kEnd && !header_.empty()) {
    return FrameStatus::kMalformed;
  }
  if (status != FrameStatus::kOk) return status;
  if (std::memcmp(header_.data(), kMagic, sizeof kMagic) != 0 ||
      static_cast<uint8_t>(header_[3]) != kFrameVersion) {
    return FrameStatus::kMalformed;
  }
  ByteReader reader(std::string_view(header_).substr(4));
  frame->type = reader.U32();
  const uint64_t length = reader.U64();
  if (length > kMaxPayloadBytes) return FrameStatus::kMalformed;
  status = FillTo(fd, deadline_ms, length, &payload_);
  if (status == FrameStatus::kEnd) return FrameStatus::kMalformed;
  if (status != FrameStatus::kOk) return status;
  frame->payload = std::move(payload_);
  payload_.clear();
  header_.clear();
  return FrameStatus::kOk;
}

FrameStatus ReadFrame(int fd, int64_t timeout_ms, Frame* frame) {
  return FrameReader().Read(fd, timeout_ms, frame);
}

FrameStatus WriteFrame(int fd, int64_t timeout_ms, uint32_t type,
                       std::string_view payload) {
  if (payload.size() > kMaxPayloadBytes) return FrameStatus::kMalformed;
  const int64_t deadline_ms = timeout_ms < 0 ? -1 : MonotonicMs() + timeout_ms;
  ByteWriter header;
  for (char c : kMagic) header.U8(static_cast<uint8_t>(c));
  header.U8(kFrameVersion);
  header.U32(type);
  header.U64(payload.size());
  const std::string bytes = header.Take();
  const FrameStatus status =
      WriteAll(fd, deadline_ms, bytes.data(), bytes.size());
  if (status != FrameStatus::kOk) return status;
  return WriteAll(fd, deadline_ms, payload.data(), payload.size());
}

}  // namespace tilefarm::worker
