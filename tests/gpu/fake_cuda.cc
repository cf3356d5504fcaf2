// See fake_cuda.h. One file: each of the driver's functions reads and changes
// the same state, which would have to be shared by files otherwise.
#include "tests/gpu/fake_cuda.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/gpu/ptx/ptx_machine.h"

namespace tilefarm {
namespace {

enum Error {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidPtx = 218,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kContextDestroyed = 709,
  kLaunchFailed = 719,
  kInvalidClusterSize = 912,
};

// Images of tests that register functions for their kernels have this.
constexpr char kPtxOfFunctions[] = "() {}";

constexpr size_t kCanaryBytes = 256;
constexpr unsigned char kCanary = 0xc5;
constexpr int kSharedByDefault = 48 << 10;
constexpr int kMostShared = 227 << 10;
// Without the attribute of kernels for clusters that are not portable.
constexpr unsigned kMostBlocksOfCluster = 8;

struct World;
struct Context {
  int device = 0;
  unsigned long long id = 0;
  int retained = 0;  // of primary ones
};
struct Block {
  size_t bytes = 0;
  enum class Kind { kDevice, kPinned, kManaged } kind = Kind::kDevice;
  Context* context = nullptr;
};
struct Module {
  Context* context = nullptr;
  std::string image;
  std::shared_ptr<ptx::Module> code;  // of PTX
};
struct Function {
  Module* module = nullptr;
  std::string name;
  int shared = kSharedByDefault;
};
struct Kernel {
  int arguments = 0;
  FakeKernel run = nullptr;
};
struct Pool {
  int device = 0;
};
struct Stream {
  Context* context = nullptr;
};
struct Event {
  bool done = true;
  std::chrono::steady_clock::time_point at;
};
using Work = std::function<void(World&)>;
// What a stream got while it was captured; graphs and what can be launched.
struct Graph {
  std::deque<Work> work;
  std::set<uintptr_t> blocks;  // that its own allocations have
};

// All that Reset forgets. Objects stay until then, so that handles of destroyed
// ones are recognised.
struct World {
  bool initialized = false;
  int sticky = 0;  // an error that every call returns
  int kernels_run = 0;
  unsigned long long contexts_made = 0;
  int overruns = 0;
  std::string log, live;
  std::map<int, Context*> primary;
  std::map<std::string, Kernel> kernels;
  std::map<uintptr_t, Block> memory;
  std::deque<std::unique_ptr<Context>> all_contexts;
  std::deque<std::unique_ptr<Module>> all_modules;
  std::deque<std::unique_ptr<Function>> functions;
  std::deque<std::unique_ptr<Pool>> all_pools;
  std::deque<std::unique_ptr<Stream>> all_streams;
  std::deque<std::unique_ptr<Event>> events;
  std::deque<std::unique_ptr<Graph>> graphs;
  std::set<void*> alive;  // contexts, modules, pools, streams, graphs
  std::deque<Work> queue;
  std::map<void*, Graph*> captures;  // by stream
};

std::recursive_mutex mutex;
World* world = new World;
thread_local std::vector<Context*> stack;

int Number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

std::string Text(const void* pointer) {
  return pointer == nullptr ? "0" : "stream";
}

// Every function begins with this. The result is an error to return.
int Begin(const char* call, const std::string& arguments = "") {
  const char* hang = std::getenv("FAKE_CUDA_HANG");
  if (hang != nullptr && std::string(hang) == call) {
    for (;;) pause();
  }
  const std::string line =
      arguments.empty() ? call : std::string(call) + " " + arguments;
  world->log += line + "\n";
  if (const char* path = std::getenv("FAKE_CUDA_LOG")) {
    if (FILE* file = std::fopen(path, "a")) {
      std::fprintf(file, "%d %s\n", static_cast<int>(getpid()), line.c_str());
      std::fclose(file);
    }
  }
  if (const char* fail = std::getenv("FAKE_CUDA_FAIL_CALL")) {
    const std::string text = fail;
    const size_t colon = text.find(':');
    if (text.substr(0, colon) == call && colon != std::string::npos) {
      // "CALL:ERROR:once"
      if (text.ends_with(":once")) unsetenv("FAKE_CUDA_FAIL_CALL");
      return std::atoi(text.c_str() + colon + 1);
    }
  }
  if (!world->initialized) return kNotInitialized;
  return world->sticky;
}

int BeginInContext(const char* call, const std::string& arguments = "") {
  const int error = Begin(call, arguments);
  if (error != 0) return error;
  if (stack.empty() || stack.back() == nullptr) return kInvalidContext;
  return world->alive.count(stack.back()) ? kSuccess : kContextDestroyed;
}

template <typename T>
T* Make(std::deque<std::unique_ptr<T>>& all) {
  all.push_back(std::make_unique<T>());
  world->alive.insert(all.back().get());
  return all.back().get();
}

// Memory ----------------------------------------------------------------------

size_t MemoryBytes() {
  const char* limit = std::getenv("FAKE_CUDA_MEMORY");
  return limit == nullptr ? size_t{1} << 30 : std::stoull(limit);
}

int Allocate(void** pointer, size_t bytes, Block::Kind kind) {
  if (bytes == 0 || pointer == nullptr) return kInvalidValue;
  size_t used = 0;
  for (const auto& [address, block] : world->memory) used += block.bytes;
  if (used + bytes > MemoryBytes()) return kOutOfMemory;
  const size_t rounded = (bytes + 255) / 256 * 256;
  auto* raw = static_cast<unsigned char*>(
      std::aligned_alloc(256, rounded + 2 * kCanaryBytes));
  if (raw == nullptr) return kOutOfMemory;
  std::memset(raw, kCanary, rounded + 2 * kCanaryBytes);
  // What fresh memory has is not defined.
  std::memset(raw + kCanaryBytes, 0xdb, bytes);
  *pointer = raw + kCanaryBytes;
  world->memory[reinterpret_cast<uintptr_t>(*pointer)] =
      Block{bytes, kind, stack.empty() ? nullptr : stack.back()};
  return kSuccess;
}

int Release(World& at, uintptr_t address) {
  const auto found = at.memory.find(address);
  if (found == at.memory.end()) return kInvalidValue;
  auto* raw = reinterpret_cast<unsigned char*>(address) - kCanaryBytes;
  const size_t bytes = found->second.bytes;
  const size_t end = (bytes + 255) / 256 * 256 + 2 * kCanaryBytes;
  for (size_t i = 0; i < end; ++i) {
    const bool inside = i >= kCanaryBytes && i < kCanaryBytes + bytes;
    if (!inside && raw[i] != kCanary) {
      ++at.overruns;
      break;
    }
  }
  std::memset(raw, 0xdd, end);
  std::free(raw);
  at.memory.erase(found);
  return kSuccess;
}

// The block that has the address; null for memory that is not registered.
const Block* Find(uintptr_t address) {
  auto next = world->memory.upper_bound(address);
  if (next == world->memory.begin()) return nullptr;
  --next;
  return address < next->first + next->second.bytes ? &next->second : nullptr;
}

bool Inside(uintptr_t address, size_t bytes) {
  return Find(address) != nullptr &&
         (bytes == 0 || Find(address + bytes - 1) == Find(address));
}

#ifndef FAKE_CUDA_BROKEN
// What kernels may access: device memory, and the host's that is registered.
class KnownMemory : public ptx::Memory {
 public:
  std::pair<uintptr_t, uintptr_t> Find(uintptr_t address) const override {
    auto next = world->memory.upper_bound(address);
    if (next == world->memory.begin()) return {0, 0};
    --next;
    return {next->first, next->first + next->second.bytes};
  }
};

// The arguments of a kernel, as they are when it is launched.
using Arguments = std::vector<std::vector<unsigned char>>;

void WriteCounters(const char* path, const ptx::Launch& launch,
                   const ptx::Outcome& outcome, const ptx::Counters& counters) {
  std::FILE* file = std::fopen(path, "a");
  if (file == nullptr) return;
  const auto three = [](const std::array<unsigned, 3>& all) {
    return "[" + std::to_string(all[0]) + ", " + std::to_string(all[1]) + ", " +
           std::to_string(all[2]) + "]";
  };
  std::fprintf(
      file,
      "{\"kernel\": \"%s\", \"grid\": %s, \"threads\": %s, \"shared_bytes\": "
      "%u, \"blocks\": %u, \"instructions\":\n%s}\n",
      counters.kernel().name.c_str(), three(launch.grid).c_str(),
      three(launch.threads).c_str(), launch.shared_bytes, outcome.blocks,
      counters.Json().c_str());
  std::fclose(file);
}

// Why a launch in clusters of so many blocks fails (0: as the kernel says);
// empty: it does not.
std::string WrongCluster(const ptx::Kernel& kernel, unsigned grid_x,
                         unsigned cluster) {
  if (std::max(kernel.cluster, cluster) > kMostBlocksOfCluster) {
    return "a cluster of more than 8 blocks is not portable";
  }
  return ptx::ClusterTrouble(kernel, grid_x, cluster);
}

// Whether the kernel waits for the one before it, before it touches memory.
bool WaitsFirst(const ptx::Kernel& kernel) {
  for (const ptx::Instruction& instruction : kernel.code) {
    const std::string_view text = instruction.text;
    if (text.starts_with("griddepcontrol.wait")) return true;
    // Only addresses.
    if (text.starts_with("cvta.") || text.starts_with("mapa.")) continue;
    for (const char* space : {".global", ".shared", "tensor", "mbarrier"}) {
      if (text.find(space) != std::string_view::npos) return false;
    }
  }
  return false;
}

void RunPtx(World& at, const ptx::Kernel& kernel, ptx::Launch launch,
            const Arguments& arguments) {
  // Tensor maps are aligned.
  struct alignas(64) Room {
    unsigned char bytes[128];
  };
  std::vector<Room> rooms(arguments.size());
  std::vector<void*> pointers;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::memcpy(rooms[i].bytes, arguments[i].data(), arguments[i].size());
    pointers.push_back(rooms[i].bytes);
  }
  launch.arguments = pointers.data();
  launch.seed = static_cast<uint64_t>(at.kernels_run);
  const char* counted = std::getenv("FAKE_CUDA_COUNTERS");
  ptx::Counters counters(kernel);
  if (counted != nullptr) {
    launch.counters = &counters;
    launch.most_blocks =
        static_cast<unsigned>(Number("FAKE_CUDA_COUNTED_BLOCKS", 0));
  }
  const ptx::Outcome outcome = ptx::Run(kernel, launch, KnownMemory());
  if (counted != nullptr) WriteCounters(counted, launch, outcome, counters);
  if (outcome.fault == ptx::Fault::kNone) return;
  at.sticky = static_cast<int>(outcome.fault);
  at.log += "fault: " + outcome.what + "\n";
  std::fprintf(stderr, "fake CUDA: %s\n", outcome.what.c_str());
}
#endif

// Runs all that is enqueued. The result is an error that it made.
int Flush() {
  while (!world->queue.empty() && world->sticky == 0) {
    const auto work = std::move(world->queue.front());
    world->queue.pop_front();
    work(*world);
  }
  world->queue.clear();
  return world->sticky;
}

// What records a stream; nullptr if its work is done.
Graph* CaptureOf(void* stream) {
  const auto found = world->captures.find(stream);
  return found == world->captures.end() ? nullptr : found->second;
}

void Enqueue(void* stream, Work work) {
  Graph* capture = CaptureOf(stream);
  (capture != nullptr ? capture->work : world->queue)
      .push_back(std::move(work));
}

bool IsStream(void* stream) {
  return stream == nullptr || world->alive.count(stream) > 0;
}

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace
}  // namespace tilefarm

using namespace tilefarm;  // NOLINT

extern "C" {

// For tests
// ---------------------------------------------------------------------

void fake_cuda_reset() {
  const Lock lock(mutex);
  while (!world->memory.empty()) Release(*world, world->memory.begin()->first);
  *world = World();
  stack.clear();
}
void fake_cuda_register(const char* name, int arguments, FakeKernel kernel) {
  const Lock lock(mutex);
  world->kernels[name] = Kernel{arguments, kernel};
}
const char* fake_cuda_log() { return world->log.c_str(); }
void fake_cuda_clear_log() {
  const Lock lock(mutex);
  world->log.clear();
}
const char* fake_cuda_live() {
  const Lock lock(mutex);
  const auto count = [](const auto& all) {
    return std::count_if(all.begin(), all.end(), [](const auto& one) {
      return world->alive.count(one.get()) > 0;
    });
  };
  int retained = 0;
  for (const auto& [device, context] : world->primary) {
    retained += context->retained;
  }
  char text[200];
  std::snprintf(text, sizeof(text),
                "%zu allocations, %td modules, %td pools, %d retained contexts,"
                " %d overruns",
                world->memory.size(), count(world->all_modules),
                count(world->all_pools), retained, world->overruns);
  world->live = text;
  return world->live.c_str();
}

// Devices and contexts
// ------------------------------------------------------------

int cuInit(unsigned flags) {
  const Lock lock(mutex);
  const int error = Begin("cuInit");
  if (error != 0 && error != kNotInitialized) return error;
  if (flags != 0) return kInvalidValue;
  if (Number("FAKE_CUDA_DEVICES", 1) == 0) return kNoDevice;
  world->initialized = true;
  return kSuccess;
}
int cuGetErrorString(int error, const char** text) {
  static const std::map<int, const char*> kTexts = {
      {kInvalidValue, "invalid argument"},
      {kOutOfMemory, "out of memory"},
      {kNotInitialized, "initialization error"},
      {kNoDevice, "no CUDA-capable device is detected"},
      {kInvalidDevice, "invalid device ordinal"},
      {kInvalidContext, "invalid device context"},
      {kInvalidPtx, "a PTX JIT compilation failed"},
      {kInvalidHandle, "invalid resource handle"},
      {kNotFound, "named symbol not found"},
      {kNotReady, "device not ready"},
      {700, "an illegal memory access was encountered"},
      {702, "the launch timed out and was terminated"},
      {715, "an illegal instruction was encountered"},
      {716, "misaligned address"},
      {kContextDestroyed, "context is destroyed"},
      {719, "unspecified launch failure"},
      {kInvalidClusterSize, "cluster misconfiguration"}};
  const auto found = kTexts.find(error);
  if (found == kTexts.end()) return kInvalidValue;
  *text = found->second;
  return kSuccess;
}
int cuGetErrorName(int error, const char** name) {
  static const std::map<int, const char*> kNames = {
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kInvalidPtx, "CUDA_ERROR_INVALID_PTX"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
      {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
      {719, "CUDA_ERROR_LAUNCH_FAILED"},
      {kInvalidClusterSize, "CUDA_ERROR_INVALID_CLUSTER_SIZE"}};
  const auto found = kNames.find(error);
  if (found == kNames.end()) return kInvalidValue;
  *name = found->second;
  return kSuccess;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  const Lock lock(mutex);
  *count = Number("FAKE_CUDA_DEVICES", 1);
  return Begin("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int number) {
  const Lock lock(mutex);
  if (const int error = Begin("cuDeviceGet", std::to_string(number))) {
    return error;
  }
  if (number < 0 || number >= Number("FAKE_CUDA_DEVICES", 1)) {
    return kInvalidDevice;
  }
  *device = number;
  return kSuccess;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU %d", device);
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const Lock lock(mutex);
  static const std::map<int, int> kAttributes = {
      {1, 1024},                      // threads of a block
      {10, 32},                       // threads of a warp
      {13, 1000000},                  // clock, kHz
      {16, 132},                      // multiprocessors
      {36, 1000000},                  // clock of the memory
      {38, 1 << 20},                  // L2 cache
      {81, kMostShared + (1 << 10)},  // shared memory of a multiprocessor
      {97, kMostShared},              // shared memory of a block that opts in
      {115, 1}};                      // memory pools
  const auto found = kAttributes.find(attribute);
  *value = found == kAttributes.end() ? 0 : found->second;
  // Compute capability, major and minor.
  const int capability = Number("FAKE_CUDA_CAPABILITY", 90);
  if (attribute == 75) *value = capability / 10;
  if (attribute == 76) *value = capability % 10;
  return Begin("cuDeviceGetAttribute");
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  const Lock lock(mutex);
  *bytes = MemoryBytes();
  return Begin("cuDeviceTotalMem");
}
int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, static_cast<size_t>(bytes), "0000:%02x:00.0", device);
  return kSuccess;
}
int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) {
  const Lock lock(mutex);
  return Begin("cuDevicePrimaryCtxSetFlags");
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  const Lock lock(mutex);
  if (const int error =
          Begin("cuDevicePrimaryCtxRetain", std::to_string(device))) {
    return error;
  }
  Context*& primary = world->primary[device];
  if (primary == nullptr) {
    primary = Make(world->all_contexts);
    primary->device = device;
    primary->id = ++world->contexts_made;
  }
  ++primary->retained;
  *context = primary;
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  const Lock lock(mutex);
  if (const int error =
          Begin("cuDevicePrimaryCtxRelease", std::to_string(device))) {
    return error;
  }
  const auto found = world->primary.find(device);
  if (found == world->primary.end() || found->second->retained == 0) {
    return kInvalidContext;
  }
  --found->second->retained;
  return kSuccess;
}
int cuCtxCreate_v2(void** context, unsigned, int device) {
  const Lock lock(mutex);
  if (const int error = Begin("cuCtxCreate")) return error;
  Context* made = Make(world->all_contexts);
  made->device = device;
  made->id = ++world->contexts_made;
  stack.push_back(made);
  *context = made;
  return kSuccess;
}
int cuCtxDestroy_v2(void* context) {
  const Lock lock(mutex);
  if (const int error = Begin("cuCtxDestroy")) return error;
  if (world->alive.erase(context) == 0) return kInvalidContext;
  for (const auto& module : world->all_modules) {
    if (module->context == context) world->alive.erase(module.get());
  }
  std::vector<uintptr_t> mine;
  for (const auto& [address, block] : world->memory) {
    if (block.context == context) mine.push_back(address);
  }
  for (const uintptr_t address : mine) Release(*world, address);
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  return kSuccess;
}
int cuCtxGetCurrent(void** context) {
  const Lock lock(mutex);
  if (const int error = Begin("cuCtxGetCurrent")) return error;
  *context = stack.empty() ? nullptr : stack.back();
  return kSuccess;
}
int cuCtxSetCurrent(void* context) {
  const Lock lock(mutex);
  if (const int error = Begin("cuCtxSetCurrent")) return error;
  if (context != nullptr && !world->alive.count(context)) {
    return kInvalidContext;
  }
  if (stack.empty()) stack.push_back(nullptr);
  stack.back() = static_cast<Context*>(context);
  return kSuccess;
}
int cuCtxPushCurrent_v2(void* context) {
  const Lock lock(mutex);
  if (const int error = Begin("cuCtxPushCurrent")) return error;
  if (!world->alive.count(context)) return kInvalidContext;
  stack.push_back(static_cast<Context*>(context));
  return kSuccess;
}
int cuCtxPopCurrent_v2(void** context) {
  const Lock lock(mutex);
  Begin("cuCtxPopCurrent");
  if (stack.empty()) return kInvalidContext;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return world->sticky;
}
int cuCtxGetDevice(int* device) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuCtxGetDevice")) return error;
  *device = stack.back()->device;
  return kSuccess;
}
int cuCtxSynchronize() {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuCtxSynchronize")) return error;
  return Flush();
}

// Code
// --------------------------------------------------------------------------

int cuModuleLoadDataEx(void** module, const void* image, unsigned options,
                       const int* option, void** values) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuModuleLoadDataEx")) return error;
  const std::string text = static_cast<const char*>(image);
  const auto report = [&](const std::string& what) {
    char* log = nullptr;
    size_t bytes = 0;
    for (unsigned i = 0; i < options; ++i) {
      if (option[i] == 5) log = static_cast<char*>(values[i]);
      if (option[i] == 6) bytes = reinterpret_cast<uintptr_t>(values[i]);
    }
    if (log != nullptr) std::snprintf(log, bytes, "%s", what.c_str());
  };
  if (text.find("syntax error") != std::string::npos) {
    report("ptxas application ptx input, line 1; fatal");
    return kInvalidPtx;
  }
  std::shared_ptr<ptx::Module> code;
  if (text.find(kPtxOfFunctions) == std::string::npos) {
    std::string trouble;
    code = ptx::Module::Parse(text, &trouble);
    if (code == nullptr) {
      std::fprintf(stderr, "fake CUDA: %s\n", trouble.c_str());
      report(trouble);
      return kInvalidPtx;
    }
  }
  Module* made = Make(world->all_modules);
  made->context = stack.back();
  made->image = text;
  made->code = std::move(code);
  *module = made;
  return kSuccess;
}
int cuModuleLoadData(void** module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
int cuModuleUnload(void* module) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuModuleUnload")) return error;
  Flush();
  return world->alive.erase(module) ? kSuccess : kInvalidHandle;
}
int cuModuleGetFunction(void** function, void* handle, const char* name) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuModuleGetFunction", name)) {
    return error;
  }
  if (!world->alive.count(handle)) return kInvalidHandle;
  auto* module = static_cast<Module*>(handle);
  const size_t at = module->image.find(std::string(".entry ") + name);
  if (at == std::string::npos) return kNotFound;
  world->functions.push_back(std::make_unique<Function>());
  *world->functions.back() = Function{module, name, kSharedByDefault};
  *function = world->functions.back().get();
  return kSuccess;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  const Lock lock(mutex);
  if (const int error =
          BeginInContext("cuFuncSetAttribute", std::to_string(attribute) + " " +
                                                   std::to_string(value))) {
    return error;
  }
  if (attribute != 8 || value > kMostShared) return kInvalidValue;
  static_cast<Function*>(function)->shared = value;
  return kSuccess;
}

#ifndef FAKE_CUDA_BROKEN
static int LaunchOne(const char* call, void* handle, unsigned grid_x,
                     unsigned grid_y, unsigned grid_z, unsigned block_x,
                     unsigned block_y, unsigned block_z, unsigned shared,
                     void* stream, void** parameters, bool overlaps,
                     unsigned cluster) {
  const Lock lock(mutex);
  const auto* function = static_cast<const Function*>(handle);
  char text[300];
  std::snprintf(text, sizeof(text),
                "%s grid %u %u %u block %u %u %u shared %u on %s",
                function->name.c_str(), grid_x, grid_y, grid_z, block_x,
                block_y, block_z, shared, Text(stream).c_str());
  if (const int error = BeginInContext(call, text)) return error;
  if (!world->alive.count(function->module) || !IsStream(stream) ||
      function->module->context != stack.back()) {
    return kInvalidHandle;
  }
  if (block_x * block_y * block_z > 1024 ||
      shared > static_cast<unsigned>(function->shared)) {
    return kInvalidValue;
  }
  if (const auto code = function->module->code) {
    const ptx::Kernel* kernel = code->Find(function->name);
    if (kernel == nullptr) return kNotFound;
    const std::string trouble = WrongCluster(*kernel, grid_x, cluster);
    if (!trouble.empty()) {
      std::fprintf(stderr, "fake CUDA: %s: %s\n", function->name.c_str(),
                   trouble.c_str());
      return kInvalidClusterSize;
    }
    if (overlaps && !WaitsFirst(*kernel)) {
      std::fprintf(stderr, "%s would not wait for the kernel before it\n",
                   function->name.c_str());
      return world->sticky = kLaunchFailed;
    }
    Arguments values;
    for (size_t i = 0; i < kernel->parameters.size(); ++i) {
      const auto* value = static_cast<const unsigned char*>(parameters[i]);
      values.emplace_back(value, value + kernel->parameters[i].bytes);
    }
    ptx::Launch launch;
    launch.grid = {grid_x, grid_y, grid_z};
    launch.threads = {block_x, block_y, block_z};
    launch.shared_bytes = shared;
    launch.cluster = cluster;
    Enqueue(stream, [=](World& at) {
      if (++at.kernels_run == Number("FAKE_CUDA_FAIL_LAUNCH", 0)) {
        at.sticky = Number("FAKE_CUDA_ERROR", 700);
        return;
      }
      // The code lives as long as this.
      RunPtx(at, *code->Find(kernel->name), launch, values);
    });
    return kSuccess;
  }
  const auto kernel = world->kernels.find(function->name);
  std::vector<void*> arguments;
  if (kernel != world->kernels.end()) {
    for (int i = 0; i < kernel->second.arguments; ++i) {
      arguments.push_back(*static_cast<void**>(parameters[i]));
    }
  }
  Enqueue(stream, [=, name = function->name](World& at) mutable {
    if (++at.kernels_run == Number("FAKE_CUDA_FAIL_LAUNCH", 0)) {
      at.sticky = Number("FAKE_CUDA_ERROR", 700);
      return;
    }
    const auto found = at.kernels.find(name);
    if (found == at.kernels.end()) return;
    const unsigned grid[] = {grid_x, grid_y, grid_z};
    const unsigned block[] = {block_x, block_y, block_z};
    found->second.run(arguments.data(), grid, block, shared);
  });
  return kSuccess;
}
int cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void* stream,
                   void** parameters, void**) {
  return LaunchOne("cuLaunchKernel", handle, grid_x, grid_y, grid_z, block_x,
                   block_y, block_z, shared, stream, parameters,
                   /*overlaps=*/false, /*cluster=*/0);
}
#endif

#if !defined(FAKE_CUDA_OLD) && !defined(FAKE_CUDA_BROKEN)
struct LaunchAttribute {
  int id;
  char padding[4];
  unsigned value[3];
  char rest[52];
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};
int cuLaunchKernelEx(const LaunchConfig* config, void* handle,
                     void** parameters, void**) {
  constexpr int kClusterDimension = 4, kProgrammaticSerialization = 6;
  bool overlaps = false;
  unsigned cluster = 0;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == kClusterDimension) {
      // The executor has clusters along x only.
      if (attribute.value[0] == 0 || attribute.value[1] != 1 ||
          attribute.value[2] != 1) {
        return kInvalidClusterSize;
      }
      cluster = attribute.value[0];
    } else if (attribute.id == kProgrammaticSerialization) {
      overlaps |= attribute.value[0] != 0;
    } else {
      return kInvalidValue;
    }
  }
  return LaunchOne("cuLaunchKernelEx", handle, config->grid[0], config->grid[1],
                   config->grid[2], config->block[0], config->block[1],
                   config->block[2], config->shared, config->stream, parameters,
                   overlaps, cluster);
}
#endif

#ifndef FAKE_CUDA_OLD
int cuTensorMapEncodeTiled(void* map, unsigned element_type, unsigned dims,
                           uintptr_t memory, const uint64_t* sizes,
                           const uint64_t* strides, const unsigned* box,
                           const unsigned* element_strides, unsigned interleave,
                           unsigned swizzle, unsigned, unsigned fill) {
  return ptx::EncodeTensorMap(map, element_type, dims, memory, sizes, strides,
                              box, element_strides, interleave, swizzle, fill);
}
int cuTensorMapEncodeIm2col(void* map, unsigned element_type, unsigned dims,
                            uintptr_t memory, const uint64_t* sizes,
                            const uint64_t* strides, const int* lower,
                            const int* upper, unsigned channels,
                            unsigned pixels, const unsigned* element_strides,
                            unsigned interleave, unsigned swizzle, unsigned,
                            unsigned fill) {
  return ptx::EncodeWindowMap(map, element_type, dims, memory, sizes, strides,
                              lower, upper, channels, pixels, element_strides,
                              interleave, swizzle, fill);
}
#endif

// Memory
// ------------------------------------------------------------------------

int cuPointerGetAttribute(void* value, int attribute, uintptr_t pointer) {
  const Lock lock(mutex);
  if (const int error = Begin("cuPointerGetAttribute")) return error;
  const Block* block = Find(pointer);
  if (block == nullptr) return kInvalidValue;
  unsigned result = 0;
  if (attribute == 2) result = block->kind == Block::Kind::kDevice ? 2 : 1;
  if (attribute == 8) result = block->kind == Block::Kind::kManaged;
  std::memcpy(value, &result, sizeof(result));
  return kSuccess;
}
int cuMemAlloc_v2(void** pointer, size_t bytes) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuMemAlloc", std::to_string(bytes))) {
    return error;
  }
  return Allocate(pointer, bytes, Block::Kind::kDevice);
}
int cuMemAllocManaged(void** pointer, size_t bytes, unsigned) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuMemAllocManaged")) return error;
  return Allocate(pointer, bytes, Block::Kind::kManaged);
}
int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuMemHostAlloc")) return error;
  return Allocate(pointer, bytes, Block::Kind::kPinned);
}
int cuMemFree_v2(uintptr_t pointer) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuMemFree")) return error;
  Flush();
  return Release(*world, pointer);
}
int cuMemFreeHost(void* pointer) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuMemFreeHost")) return error;
  return Release(*world, reinterpret_cast<uintptr_t>(pointer));
}
int cuMemcpyHtoD_v2(uintptr_t to, const void* from, size_t bytes) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuMemcpyHtoD", std::to_string(bytes))) {
    return error;
  }
  if (!Inside(to, bytes)) return kInvalidValue;
  if (const int error = Flush()) return error;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kSuccess;
}
int cuMemcpyDtoH_v2(void* to, uintptr_t from, size_t bytes) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuMemcpyDtoH", std::to_string(bytes))) {
    return error;
  }
  if (!Inside(from, bytes)) return kInvalidValue;
  if (const int error = Flush()) return error;
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return kSuccess;
}
int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t bytes, void* stream) {
  const Lock lock(mutex);
  if (const int error =
          BeginInContext("cuMemcpyAsync", std::to_string(bytes))) {
    return error;
  }
  if (!IsStream(stream)) return kInvalidHandle;
  // One of them is the device's, as a whole.
  if (!Inside(to, bytes) && !Inside(from, bytes)) return kInvalidValue;
  Enqueue(stream, [=](World&) {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from),
                bytes);
  });
  return kSuccess;
}
int cuMemsetD8Async(uintptr_t to, unsigned char byte, size_t bytes,
                    void* stream) {
  const Lock lock(mutex);
  if (const int error =
          BeginInContext("cuMemsetD8Async", std::to_string(bytes))) {
    return error;
  }
  if (!Inside(to, bytes) || !IsStream(stream)) return kInvalidValue;
  Enqueue(stream, [=](World&) {
    std::memset(reinterpret_cast<void*>(to), byte, bytes);
  });
  return kSuccess;
}
int cuMemsetD32Async(uintptr_t to, unsigned word, size_t count, void* stream) {
  const Lock lock(mutex);
  if (const int error =
          BeginInContext("cuMemsetD32Async", std::to_string(count))) {
    return error;
  }
  if (!Inside(to, 4 * count) || !IsStream(stream)) return kInvalidValue;
  Enqueue(stream, [=](World&) {
    std::fill_n(reinterpret_cast<unsigned*>(to), count, word);
  });
  return kSuccess;
}
int cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes,
                         void* stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
int cuMemGetInfo_v2(size_t* free_bytes, size_t* all) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuMemGetInfo")) return error;
  *all = MemoryBytes();
  *free_bytes = MemoryBytes();
  for (const auto& [address, block] : world->memory) {
    *free_bytes -= block.bytes;
  }
  return kSuccess;
}

#ifndef FAKE_CUDA_OLD
int cuCtxGetId(void* context, unsigned long long* id) {
  const Lock lock(mutex);
  if (const int error = Begin("cuCtxGetId")) return error;
  if (!world->alive.count(context)) return kContextDestroyed;
  *id = static_cast<Context*>(context)->id;
  return kSuccess;
}
int cuMemPoolCreate(void** pool, const void*) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuMemPoolCreate")) return error;
  *pool = Make(world->all_pools);
  return kSuccess;
}
int cuMemPoolDestroy(void* pool) {
  const Lock lock(mutex);
  if (const int error = Begin("cuMemPoolDestroy")) return error;
  return world->alive.erase(pool) ? kSuccess : kInvalidHandle;
}
int cuMemPoolSetAttribute(void*, int attribute, void*) {
  const Lock lock(mutex);
  return BeginInContext("cuMemPoolSetAttribute", std::to_string(attribute));
}
int cuMemAllocFromPoolAsync(void** pointer, size_t bytes, void* pool,
                            void* stream) {
  const Lock lock(mutex);
  if (const int error =
          BeginInContext("cuMemAllocFromPoolAsync",
                         std::to_string(bytes) + " on " + Text(stream))) {
    return error;
  }
  if (!world->alive.count(pool) || !IsStream(stream)) return kInvalidHandle;
  const int error = Allocate(pointer, bytes, Block::Kind::kDevice);
  if (Graph* capture = CaptureOf(stream); error == 0 && capture != nullptr) {
    capture->blocks.insert(reinterpret_cast<uintptr_t>(*pointer));
  }
  return error;
}
int cuMemFreeAsync(uintptr_t pointer, void* stream) {
  const Lock lock(mutex);
  if (const int error =
          BeginInContext("cuMemFreeAsync", "on " + Text(stream))) {
    return error;
  }
  if (!Inside(pointer, 1) || !IsStream(stream)) return kInvalidValue;
  // A graph has its memory again in its next launch.
  if (const Graph* capture = CaptureOf(stream)) {
    return capture->blocks.count(pointer) ? kSuccess : kInvalidValue;
  }
  world->queue.push_back([=](World& at) { Release(at, pointer); });
  return kSuccess;
}

// Graphs
// ------------------------------------------------------------------------

int cuStreamBeginCapture_v2(void* stream, int mode) {
  const Lock lock(mutex);
  if (const int error =
          BeginInContext("cuStreamBeginCapture", std::to_string(mode))) {
    return error;
  }
  if (stream == nullptr || !IsStream(stream)) return kInvalidHandle;
  if (CaptureOf(stream) != nullptr) return kInvalidValue;
  world->captures[stream] = Make(world->graphs);
  return kSuccess;
}
int cuStreamEndCapture(void* stream, void** graph) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuStreamEndCapture")) {
    world->captures.erase(stream);
    return error;
  }
  Graph* capture = CaptureOf(stream);
  if (capture == nullptr) return kInvalidValue;
  world->captures.erase(stream);
  *graph = capture;
  return kSuccess;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph,
                                unsigned long long) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuGraphInstantiate")) return error;
  if (!world->alive.count(graph)) return kInvalidHandle;
  Graph* made = Make(world->graphs);
  std::swap(made->work, static_cast<Graph*>(graph)->work);
  std::swap(made->blocks, static_cast<Graph*>(graph)->blocks);
  *executable = made;
  return kSuccess;
}
int cuGraphLaunch(void* executable, void* stream) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuGraphLaunch", "on " + Text(stream))) {
    return error;
  }
  if (!world->alive.count(executable) || !IsStream(stream)) {
    return kInvalidHandle;
  }
  for (const Work& work : static_cast<Graph*>(executable)->work) {
    Enqueue(stream, work);
  }
  return kSuccess;
}
int ReleaseGraph(void* handle) {
  if (!world->alive.erase(handle)) return kInvalidHandle;
  for (const uintptr_t block : static_cast<Graph*>(handle)->blocks) {
    Release(*world, block);
  }
  return kSuccess;
}
int cuGraphDestroy(void* graph) {
  const Lock lock(mutex);
  if (const int error = Begin("cuGraphDestroy")) return error;
  return ReleaseGraph(graph);
}
int cuGraphExecDestroy(void* executable) {
  const Lock lock(mutex);
  if (const int error = Begin("cuGraphExecDestroy")) return error;
  Flush();
  return ReleaseGraph(executable);
}
#endif

// Streams and events
// ------------------------------------------------------------

int cuStreamCreate(void** stream, unsigned) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuStreamCreate")) return error;
  Stream* made = Make(world->all_streams);
  made->context = stack.back();
  *stream = made;
  return kSuccess;
}
int cuStreamDestroy_v2(void* stream) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuStreamDestroy")) return error;
  return world->alive.erase(stream) ? kSuccess : kInvalidHandle;
}
int cuStreamSynchronize(void* stream) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuStreamSynchronize", Text(stream))) {
    return error;
  }
  return IsStream(stream) ? Flush() : static_cast<int>(kInvalidHandle);
}
int cuStreamQuery(void* stream) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuStreamQuery")) return error;
  return IsStream(stream) ? Flush() : static_cast<int>(kInvalidHandle);
}
int cuEventCreate(void** event, unsigned) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuEventCreate")) return error;
  *event = Make(world->events);
  return kSuccess;
}
int cuEventRecord(void* handle, void* stream) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuEventRecord")) return error;
  if (!IsStream(stream)) return kInvalidHandle;
  auto* event = static_cast<Event*>(handle);
  event->done = false;
  world->queue.push_back([event](World&) {
    event->done = true;
    event->at = std::chrono::steady_clock::now();
  });
  return kSuccess;
}
// Time passes for all that is enqueued.
int cuEventQuery(void* event) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuEventQuery")) return error;
  if (const int error = Flush()) return error;
  return static_cast<Event*>(event)->done ? kSuccess : kNotReady;
}
int cuEventSynchronize(void*) {
  const Lock lock(mutex);
  if (const int error = BeginInContext("cuEventSynchronize")) return error;
  return Flush();
}
int cuEventElapsedTime(float* milliseconds, void* first, void* last) {
  const Lock lock(mutex);
  const std::chrono::duration<float, std::milli> passed =
      static_cast<Event*>(last)->at - static_cast<Event*>(first)->at;
  *milliseconds = passed.count();
  return BeginInContext("cuEventElapsedTime");
}
int cuEventDestroy_v2(void*) {
  const Lock lock(mutex);
  return BeginInContext("cuEventDestroy");
}

}  // extern "C"
