// TOML files, by toml++.
//
//   TF_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, "a.toml"));
//   return TomlError("a.toml", node.source(), "the name is empty");
//
// Include this header instead of toml++'s own. Version 3.3 has a parser that
// relies on assertions for some malformed input, like `[=]`: with them a
// program ends, and without them its behaviour is undefined. Here they are
// exceptions, which ParseToml catches.
#ifndef TILEFARM_BASE_TOML_H_
#define TILEFARM_BASE_TOML_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm {
// Throws std::logic_error. A function, because some assertions are in functions
// that the compiler knows not to throw; there it ends the program.
[[noreturn]] void FailTomlAssertion(const char* what);
}  // namespace tilefarm

// The library drops its assertions where NDEBUG is defined.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) \
  static_cast<void>((expr) || (::tilefarm::FailTomlAssertion(#expr), false))
// The parser is compiled once, in toml.cc.
#define TOML_HEADER_ONLY 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace tilefarm {

// InvalidArgument with NAME:LINE:COLUMN: no valid TOML.
absl::StatusOr<toml::table> ParseToml(std::string_view text,
                                      const std::string& name);

// InvalidArgument: "NAME:LINE:COLUMN: WHAT".
absl::Status TomlError(const std::string& name, const toml::source_region& at,
                       const std::string& what);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_TOML_H_
