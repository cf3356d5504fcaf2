// Every operator and model function of the printed TVM set compiles with
// `tunec`, without records, into a library with its symbol.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace tilefarm {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(PrintedSetTunecTest, OperatorsAndModelsCompile) {
  const fs::path set =
      fs::path(TILEFARM_SOURCE_DIR) / ".." / "shared" / "tvm-printed";
  if (!fs::exists(set)) {
    GTEST_SKIP() << "no printed programs at " << set;
  }
  char folder[] = "/tmp/tilefarm-printed-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const fs::path out = fs::path(folder) / "out.so";
  const fs::path log = fs::path(folder) / "log";
  for (const char* part : {"operators", "models"}) {
    std::vector<fs::path> programs;
    for (const auto& entry : fs::directory_iterator(set / part)) {
      if (entry.path().extension() == ".py") programs.push_back(entry.path());
    }
    std::sort(programs.begin(), programs.end());
    ASSERT_FALSE(programs.empty());
    int passed = 0;
    for (const fs::path& program : programs) {
      const std::string command = std::string(TILEFARM_BIN_DIR) + "/tunec '" +
                                  program.string() +
                                  "' --target host --symbol kernel -o " +
                                  out.string() + " >" + log.string() + " 2>&1";
      const int status = std::system(command.c_str());
      EXPECT_EQ(status, 0) << program << "\n" << ReadAll(log);
      if (status != 0) continue;
      void* library = dlopen(out.c_str(), RTLD_NOW | RTLD_LOCAL);
      EXPECT_NE(library, nullptr) << program << ": " << dlerror();
      if (library == nullptr) continue;
      EXPECT_NE(dlsym(library, "kernel"), nullptr) << program;
      dlclose(library);
      ++passed;
    }
    std::cout << part << ": " << passed << " of " << programs.size()
              << " functions compile with tunec\n";
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tilefarm
