// The acts that meddling_runner makes candidates of a farm do, and the records
// they must get.
#ifndef TILEFARM_TESTS_FAULT_HOSTILE_ACTS_H_
#define TILEFARM_TESTS_FAULT_HOSTILE_ACTS_H_

namespace tilefarm::testing {

struct Act {
  const char* name;  // in hostile_kernels.c
  const char* status;
  const char* error;  // a part of the recorded error
};

inline constexpr Act kActs[] = {
    {"fork_bombs", "run_error", "not allowed (clone)"},
    {"writes_to_nowhere", "run_error", "crashed with SIGSEGV"},
    {"allocates_100_gib", "run_error", "returned 12"},  // ENOMEM
    {"opens_socket", "run_error", "not allowed (socket)"},
    {"reads_file", "run_error", "not allowed (openat)"},
    {"signals_others", "run_error", "not allowed (kill)"},
    {"prints_a_lot", "wrong_result", ""},
    {"hangs_without_signals", "run_timeout", "given up"},
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_FAULT_HOSTILE_ACTS_H_
