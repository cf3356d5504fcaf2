// Files for tools that want files. Private to this folder.
#ifndef TILEFARM_COMPILER_CODEGEN_TEMPORARY_FOLDER_H_
#define TILEFARM_COMPILER_CODEGEN_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace tilefarm::codegen {

// A temporary folder, which the destructor removes.
class TemporaryFolder {
 public:
  // `prefix`: of its name. Unavailable: it cannot be made.
  static absl::StatusOr<TemporaryFolder> Create(const std::string& prefix) {
    std::error_code error;
    std::filesystem::path base = std::filesystem::temp_directory_path(error);
    if (error) base = "/tmp";
    std::string pattern = (base / (prefix + "-XXXXXX")).string();
    if (mkdtemp(pattern.data()) == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("no temporary folder ", pattern));
    }
    return TemporaryFolder(pattern);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }

 private:
  explicit TemporaryFolder(std::filesystem::path path)
      : path_(std::move(path)) {}
  std::filesystem::path path_;
};

inline absl::Status WriteFile(const std::filesystem::path& path,
                              std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path.string()));
  }
  return absl::OkStatus();
}

inline absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) {
    return absl::UnavailableError(absl::StrCat("cannot read ", path.string()));
  }
  return std::move(bytes).str();
}

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_TEMPORARY_FOLDER_H_
