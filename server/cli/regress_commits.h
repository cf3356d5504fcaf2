// Commits of a git repository, and folders where they are checked out.
#ifndef TILEFARM_SERVER_CLI_REGRESS_COMMITS_H_
#define TILEFARM_SERVER_CLI_REGRESS_COMMITS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::cli {

// The commits from the good one to the bad one, oldest first, by first parents.
// InvalidArgument: none leads from one to the other; errors of git.
absl::StatusOr<std::vector<std::string>> CommitsBetween(
    const std::string& repository, const std::string& good,
    const std::string& bad);

// Folders of commits, removed at the end.
class Worktrees {
 public:
  explicit Worktrees(std::string repository);
  ~Worktrees();
  Worktrees(const Worktrees&) = delete;
  Worktrees& operator=(const Worktrees&) = delete;

  // Checks the commit out; once for each. Returns the folder.
  absl::StatusOr<std::string> Make(const std::string& commit) const;

 private:
  const std::string repository_;
  std::string folder_;
};

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_COMMITS_H_
