#include "worker/libraries.h"

#include <utility>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "worker/runner_query.h"

namespace tilefarm::worker {

std::map<std::string, std::string> ParseLibraries(std::string_view text) {
  std::map<std::string, std::string> libraries;
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() == 2) libraries[words[0]] = words[1];
  }
  return libraries;
}

std::map<std::string, std::string> RunnersLibraries(
    std::vector<std::string> runner_command) {
  return ParseLibraries(AskRunner(std::move(runner_command), "--libraries"));
}

}  // namespace tilefarm::worker
