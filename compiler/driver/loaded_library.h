// A shared object in memory, loaded into this process.
#ifndef TILEFARM_COMPILER_DRIVER_LOADED_LIBRARY_H_
#define TILEFARM_COMPILER_DRIVER_LOADED_LIBRARY_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tilefarm::driver {

class LoadedLibrary {
 public:
  // Unavailable: no memory for the file, or the loader rejects it.
  static absl::StatusOr<LoadedLibrary> Load(std::string_view shared_object);

  // Null if there is no such symbol. Valid as long as this object or a copy.
  void* Find(const std::string& symbol) const;

 private:
  std::shared_ptr<void> handle_;
};

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_LOADED_LIBRARY_H_
