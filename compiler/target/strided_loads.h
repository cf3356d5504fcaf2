// How vectors whose lanes are apart are loaded; for code generation and for
// estimates of its cost.
#ifndef TILEFARM_COMPILER_TARGET_STRIDED_LOADS_H_
#define TILEFARM_COMPILER_TARGET_STRIDED_LOADS_H_

namespace tilefarm::target {

// Lanes up to so many elements apart are shuffled out of as many contiguous
// loads (codegen/emit_strided.cc); others are loaded one by one.
inline constexpr int kMostLoadsOfStrided = 4;

}  // namespace tilefarm::target

#endif  // TILEFARM_COMPILER_TARGET_STRIDED_LOADS_H_
