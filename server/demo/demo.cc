#include "server/demo/demo.h"

#include <stdlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/demo/embedded_recording.h"
#include "server/demo/recording.h"
#include "server/demo/replay_search.h"
#include "server/demo/replayed_device.h"

namespace tilefarm::demo {
namespace {

namespace fs = std::filesystem;

// Of a recording that is unpacked.
constexpr size_t kMostBytes = size_t{1} << 30;
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

// A folder of its own that nobody else can read.
class TemporaryFolder {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make() {
    std::error_code error;
    std::string name =
        (fs::temp_directory_path(error) / "tune-server-demo-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("cannot make ", name, ": ", std::strerror(errno)));
    }
    return std::unique_ptr<TemporaryFolder>(
        new TemporaryFolder(std::move(name)));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string File(const char* name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

absl::StatusOr<std::string> Unpack(std::string_view packed) {
  const unsigned long long size =
      ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ||
      size > kMostBytes) {
    return absl::DataLossError(
        "the recording is no file that zstd has compressed whole");
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  const size_t got =
      ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) != 0 || got != bytes.size()) {
    return absl::DataLossError("the recording is damaged");
  }
  return bytes;
}

absl::StatusOr<std::string> ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (!file.good()) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  }
  return bytes.str();
}

absl::Status WriteBytes(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.flush();
  return file.good()
             ? absl::OkStatus()
             : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

// The recording as an open database.
absl::StatusOr<std::unique_ptr<database::Store>> OpenRecording(
    const std::string& given, const std::string& path) {
  std::string bytes;
  std::string_view packed = EmbeddedRecording();
  if (!given.empty()) {
    TF_ASSIGN_OR_RETURN(bytes, ReadBytes(given));
    packed = bytes;
  }
  if (packed.substr(0, kZstdMagic.size()) == kZstdMagic) {
    TF_ASSIGN_OR_RETURN(const std::string unpacked, Unpack(packed));
    TF_RETURN_IF_ERROR(WriteBytes(path, unpacked));
  } else {
    TF_RETURN_IF_ERROR(WriteBytes(path, packed));
  }
  // For writing, so that one of an earlier schema is migrated.
  return database::Store::Open(path, database::Store::Mode::kReadWrite);
}

class RunningDemo : public Demo {
 public:
  RunningDemo(std::unique_ptr<TemporaryFolder> folder,
              std::unique_ptr<services::Server> server)
      : folder_(std::move(folder)), server_(std::move(server)) {}
  services::Server& server() override { return *server_; }

 private:
  std::unique_ptr<TemporaryFolder> folder_;
  std::unique_ptr<services::Server> server_;
};

using Devices = std::vector<std::unique_ptr<ReplayedDevice>>;

}  // namespace

absl::StatusOr<std::unique_ptr<Demo>> Demo::Start(
    const DemoOptions& demo, services::ServerOptions options) {
  TF_ASSIGN_OR_RETURN(auto folder, TemporaryFolder::Make());
  const std::string path = folder->File("tune.db");
  std::shared_ptr<const Recording> recording;
  {
    TF_ASSIGN_OR_RETURN(
        const auto source,
        OpenRecording(demo.recording, folder->File("recording.db")));
    TF_ASSIGN_OR_RETURN(Recording read, ReadRecording(*source));
    TF_RETURN_IF_ERROR(MakeDatabase(*source, read, path));
    recording = std::make_shared<const Recording>(std::move(read));
  }
  options.database_path = path;
  options.demo = true;
  options.fingerprint = recording->fingerprint;
  options.search_factory = ReplayFactory(recording);
  options.canary = nullptr;
  options.attach = [recording, speed = demo.speed](
                       farm::Farm& farm) -> std::shared_ptr<void> {
    auto devices = std::make_shared<Devices>();
    for (const auto& [name, properties] : recording->devices) {
      auto device = ReplayedDevice::Start(farm, recording, name, speed);
      if (device.ok()) {
        devices->push_back(*std::move(device));
      } else {
        Log(LogLevel::kError, "demo", device.status().ToString());
      }
    }
    return devices;
  };
  TF_ASSIGN_OR_RETURN(auto server, services::Server::Start(std::move(options)));
  return std::make_unique<RunningDemo>(std::move(folder), std::move(server));
}

}  // namespace tilefarm::demo
