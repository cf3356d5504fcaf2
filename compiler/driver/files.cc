#include "compiler/driver/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilefarm::driver {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  return std::move(text).str();
}

absl::Status WriteFile(const std::string& path, const std::string& bytes,
                       bool executable) {
  // A device, such as /dev/null, would be gone after the renaming.
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  if (std::filesystem::exists(status) &&
      !std::filesystem::is_regular_file(status)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot write ", path, ": it exists and is not a regular file"));
  }
  const std::string temporary = absl::StrCat(path, ".tmp", getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << bytes;
  file.close();
  std::error_code error;
  if (file && executable) {
    namespace fs = std::filesystem;
    fs::permissions(
        temporary,
        fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
        fs::perm_options::add, error);
  }
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    std::filesystem::remove(temporary, error);
    return absl::UnavailableError(
        absl::StrCat("cannot write ", path, ": ", reason));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::driver
