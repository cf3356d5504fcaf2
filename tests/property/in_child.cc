#include "tests/property/in_child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace tilefarm::property {

std::string InChild(const std::function<void(std::ostream&)>& work,
                    unsigned seconds, std::string* crashed) {
  int fds[2];
  if (pipe(fds) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    close(fds[0]);
    alarm(seconds);
    std::ostringstream out;
    work(out);
    const std::string text = out.str();
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = write(fds[1], text.data() + done, text.size() - done);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    _exit(0);
  }
  close(fds[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fds[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(fds[0]);
  int status = 0;
  waitpid(child, &status, 0);
  crashed->clear();
  if (WIFSIGNALED(status)) {
    *crashed = absl::StrCat("the compiler ends by signal ", WTERMSIG(status),
                            " (", strsignal(WTERMSIG(status)), ")");
  } else if (WEXITSTATUS(status) != 0) {
    *crashed = absl::StrCat("the compiler exits with ", WEXITSTATUS(status));
  }
  return text;
}

void PrintCounts(const PrimitiveCounts& counts, std::ostream& out) {
  for (const auto& [name, tried] : counts.tried) {
    const auto accepted = counts.accepted.find(name);
    out << "primitive " << tried << " "
        << (accepted == counts.accepted.end() ? 0 : accepted->second) << " "
        << name << "\n";
  }
}

void AddCounts(const std::string& line, PrimitiveCounts& counts) {
  std::istringstream in(line);
  std::string word, name;
  int tried = 0, accepted = 0;
  in >> word >> tried >> accepted >> std::ws;
  std::getline(in, name);
  counts.tried[name] += tried;
  counts.accepted[name] += accepted;
}

}  // namespace tilefarm::property
