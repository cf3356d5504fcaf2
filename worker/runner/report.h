// Reads what a child reports (ChildReport), which may be anything.
#ifndef TILEFARM_WORKER_RUNNER_REPORT_H_
#define TILEFARM_WORKER_RUNNER_REPORT_H_

#include <string.h>

#include <string>

namespace tilefarm::worker {

// Makes a private copy of a text. While the child lives, its report may change
// at any time, but every check must see the same value.
template <size_t kBytes>
std::string TextOf(const char (&reported)[kBytes]) {
  char text[kBytes];
  memcpy(text, reported, kBytes);
  text[kBytes - 1] = '\0';
  // Records must be text, so other bytes are replaced.
  for (char* c = text; *c != '\0'; ++c) {
    if (*c < ' ' || *c > '~') *c = '?';
  }
  return text;
}

// A number that a child reports; `otherwise`: it is impossible.
inline double Possible(double value, double least, double most,
                       double otherwise) {
  return value >= least && value <= most ? value : otherwise;
}

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_REPORT_H_
