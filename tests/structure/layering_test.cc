// Checks the allowed includes (docs/architecture.md) in the sources.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace tilefarm {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TILEFARM_SOURCE_DIR;

// The folders that a folder may include, besides itself. The longest prefix
// applies.
const std::map<std::string, std::set<std::string>>& MayInclude() {
  static const auto* const map =
      new std::map<std::string, std::set<std::string>>{
          {"base", {}},
          {"proto", {}},
          {"transport", {"base"}},
          {"compiler/ir", {"base"}},
          {"compiler/arith", {"base", "compiler/ir"}},
          {"compiler/target", {"base"}},
          {"compiler/te", {"base", "compiler/ir"}},
          {"compiler/graph",
           {"base", "compiler/ir", "compiler/arith", "compiler/te"}},
          {"compiler/onnx",
           {"base", "compiler/ir", "compiler/te", "compiler/graph"}},
          {"compiler/schedule",
           {"base", "compiler/ir", "compiler/arith", "compiler/target"}},
          {"compiler/space",
           {"base", "compiler/ir", "compiler/arith", "compiler/schedule",
            "compiler/target"}},
          {"compiler/lower",
           {"base", "compiler/ir", "compiler/arith", "compiler/target"}},
          {"compiler/runtime", {"base"}},
          {"compiler/codegen",
           {"base", "compiler/ir", "compiler/arith", "compiler/lower",
            "compiler/runtime", "compiler/target"}},
          {"compiler/oracle",
           {"base", "compiler/ir", "compiler/target", "compiler/codegen"}},
          {"compiler/driver",
           {"base", "compiler", "database", "proto", "transport",
            // the estimate chooses the default schedule
            "cost_model"}},
          {"database", {"base", "compiler/ir", "compiler/target"}},
          {"cost_model", {"base", "compiler"}},
          {"server",
           {"base", "compiler", "cost_model", "database", "proto",
            "transport"}},
          {"worker", {"base", "compiler", "proto", "transport"}},
      };
  return *map;
}

std::string PartOf(const std::string& path) {
  std::string best;
  for (const auto& [part, may] : MayInclude()) {
    if (path.rfind(part + "/", 0) == 0 && part.size() > best.size()) {
      best = part;
    }
  }
  return best;
}

bool Under(const std::string& part, const std::set<std::string>& allowed) {
  for (const std::string& prefix : allowed) {
    if (part == prefix || part.rfind(prefix + "/", 0) == 0) return true;
  }
  return false;
}

struct Include {
  std::string file;  // relative to the root
  std::string target;
};

const std::vector<Include>& AllIncludes() {
  static const auto* const includes = [] {
    auto* out = new std::vector<Include>;
    const std::regex pattern(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
    for (const char* top : {"base", "compiler", "cost_model", "database",
                            "server", "transport", "worker"}) {
      for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
        const fs::path& path = entry.path();
        if (path.extension() != ".h" && path.extension() != ".cc" &&
            path.extension() != ".c") {
          continue;
        }
        std::ifstream in(path);
        std::string line;
        std::smatch match;
        while (std::getline(in, line)) {
          if (std::regex_search(line, match, pattern)) {
            out->push_back(
                {fs::relative(path, kRoot).string(), match[1].str()});
          }
        }
      }
    }
    return out;
  }();
  return *includes;
}

bool StartsWithAny(const std::string& text,
                   const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    if (text.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

TEST(LayeringTest, PartsIncludeOnlyWhatTheyMayKnow) {
  ASSERT_GT(AllIncludes().size(), 500u);
  for (const Include& include : AllIncludes()) {
    const std::string from = PartOf(include.file);
    const std::string to = PartOf(include.target);
    if (from.empty() || to.empty() || from == to) continue;
    EXPECT_TRUE(Under(to, MayInclude().at(from)))
        << include.file << " includes " << include.target << ": " << from
        << " must not know " << to;
  }
}

TEST(LayeringTest, ForeignHeadersStayInSources) {
  const std::vector<std::string> foreign = {"llvm/",   "lld/",       "xgboost/",
                                            "sqlite3", "grpc",       "openssl/",
                                            "boost/",  "prometheus/"};
  // Private headers that contain such types for .cc files in the same folder.
  const std::regex private_header(R"(.*(_internal|_private|sqlite[a-z_]*)\.h)");
  for (const Include& include : AllIncludes()) {
    if (!StartsWithAny(include.target, foreign)) continue;
    const bool header = include.file.size() > 2 &&
                        include.file.substr(include.file.size() - 2) == ".h";
    if (header) {
      EXPECT_TRUE(std::regex_match(include.file, private_header) ||
                  include.file.rfind("server/services/", 0) == 0 ||
                  include.file.rfind("compiler/codegen/", 0) == 0 ||
                  include.file.rfind("worker/", 0) == 0)
          << include.file << " includes " << include.target;
    }
  }
}

TEST(LayeringTest, TheCompilersCoreKnowsNoLibraries) {
  const std::vector<std::string> core = {
      "compiler/ir/",    "compiler/arith/",    "compiler/te/",
      "compiler/graph/", "compiler/schedule/", "compiler/space/",
      "compiler/lower/"};
  const std::vector<std::string> banned = {"llvm/",   "lld/", "xgboost/",
                                           "sqlite3", "grpc", "google/protobuf",
                                           "proto/"};
  for (const Include& include : AllIncludes()) {
    if (!StartsWithAny(include.file, core)) continue;
    EXPECT_FALSE(StartsWithAny(include.target, banned))
        << include.file << " includes " << include.target;
  }
}

TEST(LayeringTest, OnnxFilesAreReadInOneFolder) {
  bool found = false;
  for (const Include& include : AllIncludes()) {
    if (include.target.rfind("onnx/", 0) != 0) continue;
    found = true;
    EXPECT_EQ(include.file.rfind("compiler/onnx/", 0), 0u)
        << include.file << " includes " << include.target;
    // One header has the classes of the schema.
    const bool header = include.file.back() == 'h';
    EXPECT_TRUE(!header || include.file == "compiler/onnx/schema.h")
        << include.file << " includes " << include.target;
  }
  EXPECT_TRUE(found);
  for (const Include& include : AllIncludes()) {
    if (include.target.rfind("compiler/onnx/", 0) != 0) continue;
    if (include.file.rfind("compiler/onnx/", 0) == 0) continue;
    EXPECT_EQ(include.target, "compiler/onnx/importer.h")
        << include.file << " includes a private header";
  }
}

}  // namespace
}  // namespace tilefarm
