#include "tests/support/programs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/status/status.h"

namespace tilefarm::testing {

std::string PrintedSetFolder() {
  const char* other = std::getenv("TILEFARM_PRINTED_SET");
  const std::string folder =
      other ? other : TILEFARM_SOURCE_DIR "/../shared/tvm-printed";
  return std::filesystem::is_directory(folder) ? folder : "";
}

std::vector<std::string> PrintedFiles(const std::string& folder,
                                      const std::string& ending) {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(PrintedSetFolder() + "/" + folder)) {
    const std::string path = entry.path().string();
    const bool trace = path.ends_with(".trace.py");
    if (path.ends_with(ending) && trace == (ending == ".trace.py")) {
      out.push_back(path);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(path);
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace tilefarm::testing
