// Compiled functions in this process.
#ifndef TILEFARM_TESTS_PROPERTY_COMPILED_LIBRARY_H_
#define TILEFARM_TESTS_PROPERTY_COMPILED_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tilefarm::property {

// A loaded shared object; unloaded with the object.
class CompiledLibrary {
 public:
  CompiledLibrary() = default;
  CompiledLibrary(const CompiledLibrary&) = delete;
  CompiledLibrary& operator=(const CompiledLibrary&) = delete;
  ~CompiledLibrary();

  // Of the file's bytes. Internal: it does not load.
  absl::Status Load(const std::string& shared_object);
  // Null: it has no such symbol.
  void* Find(const std::string& symbol) const;

 private:
  void* handle_ = nullptr;
};

// Calls `int32_t symbol(void*, ...)` with 1 to 16 parameters; -1 for more.
int CallFunction(void* symbol, const std::vector<void*>& parameters);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_COMPILED_LIBRARY_H_
