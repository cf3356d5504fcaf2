# Headers of the C++ library, Abseil and GoogleTest, which nearly every source
# includes, are parsed once a tree: they are two thirds of what the compiler does
# for a source. Headers of this project are not among them, so a change never
# makes the whole tree compile again.
#
# Sources still include what they use: tests/check_includes.py finds what the
# compiler cannot. TILEFARM_PRECOMPILE=OFF compiles them without these headers.
option(TILEFARM_PRECOMPILE "Precompile headers of libraries" ON)

# <iostream> is left out: it adds an initialiser to every object.
set(tilefarm_common_headers
  <algorithm> <array> <bit> <chrono> <cmath> <cstddef> <cstdint> <cstdio>
  <cstdlib> <cstring> <deque> <functional> <limits> <map> <memory> <numeric>
  <optional> <ranges> <set> <span> <string> <string_view> <tuple>
  <unordered_map> <unordered_set> <utility> <variant> <vector>
  [["absl/algorithm/container.h"]] [["absl/status/status.h"]]
  [["absl/status/statusor.h"]] [["absl/strings/match.h"]]
  [["absl/strings/numbers.h"]] [["absl/strings/str_cat.h"]]
  [["absl/strings/str_format.h"]] [["absl/strings/str_join.h"]]
  [["absl/strings/str_split.h"]] [["absl/time/clock.h"]]
  [["absl/time/time.h"]])
set(tilefarm_test_headers
  ${tilefarm_common_headers}
  <atomic> <filesystem> <fstream> <iostream> <sstream> <thread>
  <gmock/gmock.h> <gtest/gtest.h>)

# A precompiled header is valid for libraries (-fPIC) or for programs (-fPIE).
# A target of each kind makes it, and the others reuse it.
function(tilefarm_precompile_for target headers)
  target_link_libraries(${target} PRIVATE
    absl::status absl::statusor absl::str_format absl::strings absl::time
    tilefarm_options ${ARGN})
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()

# tilefarm_precompile(TARGET library|program|test)
function(tilefarm_precompile target kind)
  if(TARGET tilefarm_${kind}_pch)
    target_precompile_headers(${target} REUSE_FROM tilefarm_${kind}_pch)
  endif()
endfunction()

if(TILEFARM_PRECOMPILE)
  # GCC 12's optimiser reports copies of std::string falsely where it does not
  # know any more that their code is from a system header.
  target_compile_options(tilefarm_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow>)
  set(source ${CMAKE_BINARY_DIR}/precompiled.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() { return 0; }\n")
  add_library(tilefarm_library_pch OBJECT ${source})
  add_executable(tilefarm_program_pch EXCLUDE_FROM_ALL ${source})
  tilefarm_precompile_for(tilefarm_library_pch "${tilefarm_common_headers}")
  tilefarm_precompile_for(tilefarm_program_pch "${tilefarm_common_headers}")
  if(TILEFARM_TESTS)
    add_executable(tilefarm_test_pch EXCLUDE_FROM_ALL ${source})
    tilefarm_precompile_for(tilefarm_test_pch "${tilefarm_test_headers}"
      GTest::gmock)
  endif()
endif()
