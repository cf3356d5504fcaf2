#include "worker/runner/opencl_device.h"

#include <stdlib.h>

#include <algorithm>
#include <cstddef>

#include "worker/monotonic.h"
#include "worker/runner/child.h"

namespace tilefarm::worker {
namespace {

// Times of events are tried on writes that take so long by the host's clock,
// which makes the time of enqueueing them small. They must be within these
// factors of that time; a busy host may see an end late.
constexpr double kTrialSeconds = 5e-3;
constexpr int kMostTrialFlushes = 4096;
constexpr int kTimerTrials = 3;
constexpr double kLeastOfHostTime = 0.2, kMostOfHostTime = 1.05;

DeviceError ErrorOf(const char* call, OpenClResult result) {
  return {call, -result};
}

OpenClMemory WholeOf(const DeviceMemory& memory) {
  return static_cast<OpenClMemory>(memory.whole);
}

// Sets the element `last` to 1.
constexpr char kTrialSource[] =
    "__kernel void trial(__global int* out, int last) {\n"
    "  if (get_global_id(0) == last) out[last] = 1;\n"
    "}\n";

}  // namespace

std::string OpenClDevice::Query(int number) {
  // A candidate has one core, so further threads of PoCL would only take turns
  // on it.
  setenv("POCL_MAX_PTHREAD_COUNT", "1", 0);
  const std::string error = driver_.Load();
  return error.empty()
             ? QueryOpenClDevice(driver_, number, &handle_, &properties_)
             : error;
}

std::string OpenClDevice::Open() {
  const intptr_t platform[] = {kOpenClContextPlatform,
                               reinterpret_cast<intptr_t>(handle_.platform), 0};
  OpenClResult result = 0;
  context_ = driver_.CreateContext(platform, 1, &handle_.device, nullptr,
                                   nullptr, &result);
  if (result != 0) return Text(ErrorOf("clCreateContext", result));
  queue_ = driver_.CreateCommandQueue(context_, handle_.device,
                                      kOpenClProfiling, &result);
  if (result != 0) return Text(ErrorOf("clCreateCommandQueue", result));
  flushed_bytes_ =
      std::max<uint64_t>(2 * properties_.l2_bytes, uint64_t{1} << 20);
  flushed_ = driver_.CreateBuffer(context_, kOpenClReadWrite, flushed_bytes_,
                                  nullptr, &result);
  if (result != 0) return Text(ErrorOf("clCreateBuffer", result));
  const DeviceError error = TryTimer();
  return error ? Text(error) : "";
}

std::string OpenClDevice::Try() {
  const char* source = kTrialSource;
  OpenClResult result = 0;
  const OpenClProgram program =
      driver_.CreateProgramWithSource(context_, 1, &source, nullptr, &result);
  if (result != 0) {
    return "trial of " + Text(ErrorOf("clCreateProgramWithSource", result));
  }
  result =
      driver_.BuildProgram(program, 1, &handle_.device, "", nullptr, nullptr);
  if (result != 0) {
    return "trial of " + Text(ErrorOf("clBuildProgram", result)) + ": " +
           BuildLog(program);
  }
  const OpenClKernel kernel = driver_.CreateKernel(program, "trial", &result);
  if (result != 0) return "trial of " + Text(ErrorOf("clCreateKernel", result));
  std::vector<int32_t> found(size_t{1} << 20);
  const auto bytes = found.size() * sizeof(found[0]);
  const auto last = static_cast<int32_t>(found.size() - 1);
  DeviceMemory memory;
  DeviceError error = Allocate(properties_.alignment, bytes, &memory);
  if (!error) error = Write(found.data(), memory, memory.guard_bytes, bytes);
  if (!error) {
    const auto set = [&](uint32_t number, size_t size, const void* value) {
      return ErrorOf("clSetKernelArg",
                     driver_.SetKernelArg(kernel, number, size, value));
    };
    error = set(0, sizeof memory.data, &memory.data);
    if (!error) error = set(1, sizeof last, &last);
  }
  if (!error) {
    const size_t threads = found.size();
    error = ErrorOf(
        "clEnqueueNDRangeKernel",
        driver_.EnqueueNdRangeKernel(queue_, kernel, 1, nullptr, &threads,
                                     nullptr, 0, nullptr, nullptr));
  }
  if (!error) error = Wait();
  if (!error) error = Read(memory, memory.guard_bytes, bytes, found.data());
  if (error) return "trial of " + Text(error);
  Free(memory);
  driver_.ReleaseKernel(kernel);
  driver_.ReleaseProgram(program);
  return found.back() == 1 ? "" : "a kernel of a trial did not run";
}

std::string OpenClDevice::BuildLog(OpenClProgram program) const {
  size_t bytes = 0;
  if (driver_.GetProgramBuildInfo(program, handle_.device, kOpenClBuildLog, 0,
                                  nullptr, &bytes) != 0) {
    return "";
  }
  std::string log(bytes, '\0');
  driver_.GetProgramBuildInfo(program, handle_.device, kOpenClBuildLog, bytes,
                              log.data(), nullptr);
  return log.c_str();
}

std::string OpenClDevice::Text(const DeviceError& error) const {
  return std::string(error.call) + ": " + OpenClErrorText(-error.code);
}

bool OpenClDevice::EndsContext(int code) const {
  switch (-code) {
    case -2:     // the device is not available
    case -4:     // no memory on the device
    case -5:     // out of resources: also a fault of a kernel
    case -6:     // no memory on the host
    case -14:    // a command has failed
    case -34:    // the context is invalid
    case -36:    // the queue is invalid
    case -9999:  // NVIDIA: illegal access
      return true;
    default:
      return false;
  }
}

DeviceError OpenClDevice::Allocate(uint64_t guard_bytes, uint64_t data_bytes,
                                   DeviceMemory* memory) {
  memory->guard_bytes = guard_bytes;
  memory->data_bytes = data_bytes;
  OpenClResult result = 0;
  const OpenClMemory whole = driver_.CreateBuffer(
      context_, kOpenClReadWrite, memory->bytes(), nullptr, &result);
  if (result != 0) return ErrorOf("clCreateBuffer", result);
  memory->whole = whole;
  memory->data = whole;
  if (guard_bytes > 0) {
    const OpenClRegion region = {guard_bytes, data_bytes};
    memory->data = driver_.CreateSubBuffer(whole, kOpenClReadWrite,
                                           kOpenClRegionType, &region, &result);
    if (result != 0) {
      driver_.ReleaseMemObject(whole);
      return ErrorOf("clCreateSubBuffer", result);
    }
  }
  allocated_ += memory->bytes();
  return {};
}

void OpenClDevice::Free(const DeviceMemory& memory) {
  if (memory.data != memory.whole) {
    driver_.ReleaseMemObject(static_cast<OpenClMemory>(memory.data));
  }
  driver_.ReleaseMemObject(WholeOf(memory));
  allocated_ -= memory.bytes();
}

DeviceError OpenClDevice::FreeBytes(uint64_t* bytes) {
  const uint64_t taken = allocated_ + flushed_bytes_;
  *bytes = properties_.memory_bytes - std::min(taken, properties_.memory_bytes);
  return {};
}

DeviceError OpenClDevice::Fill(const DeviceMemory& memory, uint64_t at,
                               uint64_t bytes, unsigned char value) {
  return ErrorOf("clEnqueueFillBuffer",
                 driver_.EnqueueFillBuffer(queue_, WholeOf(memory), &value, 1,
                                           at, bytes, 0, nullptr, nullptr));
}

DeviceError OpenClDevice::Copy(const DeviceMemory& from,
                               const DeviceMemory& to) {
  return ErrorOf("clEnqueueCopyBuffer",
                 driver_.EnqueueCopyBuffer(
                     queue_, WholeOf(from), WholeOf(to), from.guard_bytes,
                     to.guard_bytes, from.data_bytes, 0, nullptr, nullptr));
}

DeviceError OpenClDevice::Write(const void* from, const DeviceMemory& to,
                                uint64_t at, uint64_t bytes) {
  return ErrorOf(
      "clEnqueueWriteBuffer",
      driver_.EnqueueWriteBuffer(queue_, WholeOf(to), kOpenClBlocking, at,
                                 bytes, from, 0, nullptr, nullptr));
}

DeviceError OpenClDevice::Read(const DeviceMemory& from, uint64_t at,
                               uint64_t bytes, void* to) {
  return ErrorOf(
      "clEnqueueReadBuffer",
      driver_.EnqueueReadBuffer(queue_, WholeOf(from), kOpenClBlocking, at,
                                bytes, to, 0, nullptr, nullptr));
}

DeviceError OpenClDevice::Wait() {
  return ErrorOf("clFinish", driver_.Finish(queue_));
}

DeviceError OpenClDevice::Flush() {
  ++flush_value_;
  return ErrorOf("clEnqueueFillBuffer",
                 driver_.EnqueueFillBuffer(
                     queue_, flushed_, &flush_value_, sizeof flush_value_, 0,
                     flushed_bytes_ / sizeof flush_value_ * sizeof flush_value_,
                     0, nullptr, nullptr));
}

DeviceError OpenClDevice::Mark(OpenClEvent* event) {
  return ErrorOf("clEnqueueMarkerWithWaitList",
                 driver_.EnqueueMarkerWithWaitList(queue_, 0, nullptr, event));
}

DeviceError OpenClDevice::Between(OpenClEvent* from, OpenClEvent* to,
                                  double* seconds) {
  uint64_t ends[2] = {};
  OpenClResult result = 0;
  for (int i = 0; i < 2; ++i) {
    OpenClEvent* const event = i == 0 ? from : to;
    if (*event == nullptr) continue;
    const OpenClResult failure = driver_.GetEventProfilingInfo(
        *event, kOpenClEndTime, sizeof ends[i], &ends[i], nullptr);
    if (result == 0) result = failure;
    driver_.ReleaseEvent(*event);
    *event = nullptr;
  }
  // Negative if the second one seems to be the earlier.
  *seconds =
      static_cast<double>(static_cast<int64_t>(ends[1] - ends[0])) * 1e-9;
  return ErrorOf("clGetEventProfilingInfo", result);
}

DeviceError OpenClDevice::TryTimer() {
  // The first writing makes the memory.
  if (const DeviceError error = Flush()) return error;
  if (const DeviceError error = Wait()) return error;
  int flushes = 1;
  for (int trial = 0; trial < kTimerTrials;) {
    OpenClEvent first = nullptr;
    OpenClEvent last = nullptr;
    const double start = MonotonicSeconds();
    if (const DeviceError error = Mark(&first)) return error;
    for (int i = 0; i < flushes; ++i) {
      if (const DeviceError error = Flush()) return error;
    }
    if (const DeviceError error = Mark(&last)) return error;
    if (const DeviceError error = Wait()) return error;
    const double host_seconds = MonotonicSeconds() - start;
    double seconds = 0;
    const bool told = !Between(&first, &last, &seconds);
    flush_seconds_ = std::max(host_seconds / flushes, 1e-6);
    if (host_seconds < kTrialSeconds && flushes < kMostTrialFlushes) {
      flushes *= 2;
      continue;
    }
    events_have_times_ = told && seconds >= kLeastOfHostTime * host_seconds &&
                         seconds <= kMostOfHostTime * host_seconds;
    if (events_have_times_) {
      flush_seconds_ = std::max(seconds / flushes, 1e-6);
      break;
    }
    ++trial;
  }
  return {};
}

DeviceError OpenClDevice::StartTimer() {
  if (events_have_times_) return Mark(&start_);
  const DeviceError error = Wait();
  started_ = MonotonicSeconds();
  return error;
}

DeviceError OpenClDevice::StopTimer() {
  if (events_have_times_) return Mark(&stop_);
  const DeviceError error = Wait();
  stopped_ = MonotonicSeconds();
  return error;
}

DeviceError OpenClDevice::ReadTimer(double* seconds) {
  if (!events_have_times_) {
    *seconds = stopped_ - started_;
    return {};
  }
  if (const DeviceError error = Wait()) return error;
  return Between(&start_, &stop_, seconds);
}

const char* OpenClDevice::TimerName() const {
  return events_have_times_ ? "events" : "host clock";
}

void OpenClDevice::UseCores(const std::vector<uint32_t>& cores) {
  RunThreadsOnCores(cores);
}

}  // namespace tilefarm::worker
