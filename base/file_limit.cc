#include "base/file_limit.h"

#include <sys/resource.h>

namespace tilefarm {

int64_t RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace tilefarm
