#include "server/farm/random_id.h"

#include <sys/random.h>

#include "absl/strings/escaping.h"
#include "base/check.h"

namespace tilefarm::farm {

std::string RandomId(int bits) {
  char bytes[32];
  const int size = bits / 8;
  TF_CHECK(size > 0 && size <= static_cast<int>(sizeof(bytes)));
  TF_CHECK(getrandom(bytes, size, 0) == size);
  return absl::BytesToHexString(absl::string_view(bytes, size));
}

}  // namespace tilefarm::farm
