# One function per kind of target. Sources and dependencies are explicit and
# sorted; libraries are static and named by their folder.

add_library(tilefarm_options INTERFACE)
# GCC 12's optimiser reports these two falsely for std::variant and std::string,
# the first also where a sanitizer adds code. There it also inlines one of the
# two halves of LLVM's operators new and delete and takes them for a mismatch.
# -pthread, which gRPC's targets pass on, must be the same for all users of a
# precompiled header.
target_compile_options(tilefarm_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -pthread
  $<$<CONFIG:Release>:-Wno-maybe-uninitialized -Wno-restrict>
  $<$<BOOL:${TILEFARM_WERROR}>:-Werror>)
target_include_directories(tilefarm_options INTERFACE
  ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
if(TILEFARM_SANITIZE)
  target_compile_options(tilefarm_options INTERFACE
    -fsanitize=${TILEFARM_SANITIZE} -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>
    -fno-sanitize-recover=all
    # Clang's check of a called function's type reads what stands before its
    # code; before generated code that may be an unmapped page.
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_link_options(tilefarm_options INTERFACE
    -fsanitize=${TILEFARM_SANITIZE})
endif()

# tilefarm_library(NAME SOURCES a.cc b.cc DEPS x y [PRIVATE_DEPS z])
function(tilefarm_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name}
    PUBLIC ${ARG_DEPS}
    PRIVATE tilefarm_options ${ARG_PRIVATE_DEPS})
  target_include_directories(${name} PUBLIC
    ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  tilefarm_precompile(${name} library)
endfunction()

# tilefarm_program(NAME SOURCES main.cc DEPS x y)
function(tilefarm_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE tilefarm_options ${ARG_DEPS})
  tilefarm_precompile(${name} program)
endfunction()

# What the sanitizer presets build and run: `ctest -L sanitize`.
add_custom_target(sanitizer_tests)

# tilefarm_test(NAME LABEL unit SOURCES x_test.cc DEPS x [TIMEOUT 60])
# A GoogleTest program, which is one ctest test. LABEL is one or more of unit,
# golden, property, e2e, fault, abuse, fuzz, farm, database, threads; unit,
# abuse, fuzz, farm and database tests also run under ASan and UBSan, those with
# threads under TSan.
function(tilefarm_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABEL;SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE
    tilefarm_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    TILEFARM_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    TILEFARM_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bin)
  tilefarm_precompile(${name} test)
  # One thread alone has no races: TSan takes the tests that have several.
  set(sanitized farm database threads)
  if(NOT TILEFARM_SANITIZE STREQUAL "thread")
    list(APPEND sanitized abuse fuzz unit)
  endif()
  foreach(label IN LISTS sanitized)
    if(label IN_LIST ARG_LABEL AND NOT sanitize IN_LIST ARG_LABEL)
      list(APPEND ARG_LABEL sanitize)
      add_dependencies(sanitizer_tests ${name})
    endif()
  endforeach()
  if(TILEFARM_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT}
    # Schedules and lowering verify what every step makes.
    ENVIRONMENT "TILEFARM_VERIFY=1")
endfunction()
