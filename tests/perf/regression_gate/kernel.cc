// The artifact of regression_gate: a matrix product, slowed by inserted work.
//
// The work is a chain of multiplications, spread over the rows, in the same
// code with and without it: regression_gate_work says how many, 0 for the
// baseline. Each artifact of the study is a copy of this library in a file of
// its own.
#include <cstdint>

extern "C" {

int64_t regression_gate_work = 0;

// C += A * B, all of n * n. Returns a value that depends on the inserted work,
// so that it is not optimised away.
float regression_gate_kernel(const float* a, const float* b, float* c,
                             int64_t n) {
  const int64_t work = regression_gate_work;
  float chain = c[0];
  for (int64_t i = 0; i < n; ++i) {
    float* const row = c + i * n;
    for (int64_t k = 0; k < n; ++k) {
      const float factor = a[i * n + k];
      const float* const other = b + k * n;
      for (int64_t j = 0; j < n; ++j) row[j] += factor * other[j];
    }
    const int64_t steps = work * (i + 1) / n - work * i / n;
    for (int64_t step = 0; step < steps; ++step)
      chain = chain * 0.999f + 0.001f;
  }
  return chain;
}

}  // extern "C"
