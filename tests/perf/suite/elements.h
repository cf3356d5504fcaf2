// Buffers of the suite's dtypes.
#ifndef TILEFARM_TESTS_PERF_SUITE_ELEMENTS_H_
#define TILEFARM_TESTS_PERF_SUITE_ELEMENTS_H_

#include <cstddef>
#include <random>
#include <string>

namespace tilefarm::perf {

// "float32" and the dtypes of low_precision.py; throws for others.
size_t ElementBytes(const std::string& dtype);
// Floats in [-1, 1), bytes of any value.
void FillRandom(const std::string& dtype, void* data, size_t count,
                std::mt19937& random);
double ElementAt(const std::string& dtype, const void* data, size_t i);

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_SUITE_ELEMENTS_H_
