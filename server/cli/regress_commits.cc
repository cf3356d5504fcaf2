#include "server/cli/regress_commits.h"

#include <stdlib.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/cli/run_program.h"

namespace tilefarm::cli {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> Git(const std::string& repository,
                                std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"git", "-C", repository});
  TF_ASSIGN_OR_RETURN(
      std::string output,
      RunProgram({.argv = std::move(arguments), .limit = absl::Minutes(10)}));
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CommitsBetween(
    const std::string& repository, const std::string& good,
    const std::string& bad) {
  TF_ASSIGN_OR_RETURN(const std::string first,
                      Git(repository, {"rev-parse", "--verify",
                                       absl::StrCat(good, "^{commit}")}));
  TF_ASSIGN_OR_RETURN(
      const std::string list,
      Git(repository, {"rev-list", "--reverse", "--first-parent",
                       absl::StrCat(first, "..", bad)}));
  std::vector<std::string> commits = {first};
  for (const std::string& commit : std::vector<std::string>(
           absl::StrSplit(list, '\n', absl::SkipEmpty()))) {
    commits.push_back(commit);
  }
  if (commits.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("no commit leads from ", good, " to ", bad));
  }
  return commits;
}

Worktrees::Worktrees(std::string repository)
    : repository_(std::move(repository)) {
  std::error_code error;
  std::string folder =
      (fs::temp_directory_path(error) / "tilefarm-bisect-XXXXXX").string();
  if (mkdtemp(folder.data()) != nullptr) folder_ = folder;
}

Worktrees::~Worktrees() {
  if (folder_.empty()) return;
  std::error_code error;
  fs::remove_all(folder_, error);
  Git(repository_, {"worktree", "prune"}).status().IgnoreError();
}

absl::StatusOr<std::string> Worktrees::Make(const std::string& commit) const {
  if (folder_.empty()) {
    return absl::UnavailableError("no temporary folder can be made");
  }
  const std::string path = absl::StrCat(folder_, "/", commit);
  TF_RETURN_IF_ERROR(
      Git(repository_, {"worktree", "add", "--detach", path, commit}).status());
  return path;
}

}  // namespace tilefarm::cli
