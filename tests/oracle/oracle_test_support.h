// What tests of the oracle share: inputs, programs from text, and the
// interpreter's results.
#ifndef TILEFARM_TESTS_ORACLE_ORACLE_TEST_SUPPORT_H_
#define TILEFARM_TESTS_ORACLE_ORACLE_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "compiler/ir/float16.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "tests/support/host_oracle.h"

namespace tilefarm::testing {

using Buffers = std::vector<std::vector<std::byte>>;

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <typename T>
std::vector<T> ValuesOf(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Floats in [-1, 1], integers in [-20, 20] or [0, 40], bools.
inline Buffers RandomInputs(const ir::PrimFunc& function, uint64_t seed) {
  Rng rng(seed);
  Buffers buffers;
  for (const ir::Buffer& param : function.params) {
    const ir::DataType dtype = param->dtype;
    const auto width = static_cast<size_t>(dtype.bytes());
    std::vector<std::byte>& data = buffers.emplace_back();
    for (int64_t i = 0; i < param->num_elements(); ++i) {
      const double unit = rng.Uniform() * 2 - 1;
      uint64_t bits = static_cast<uint64_t>(rng.Between(-20, 20) +
                                            (dtype.is_int() ? 0 : 20));
      if (dtype.is_bool()) bits = rng.Below(2);
      if (dtype == ir::DataType::Float(64)) {
        bits = std::bit_cast<uint64_t>(unit);
      } else if (dtype.is_float()) {
        const auto single = static_cast<float>(unit);
        bits = dtype.bits == 32 ? std::bit_cast<uint32_t>(single)
               : dtype.code == ir::TypeCode::kBFloat ? ir::FloatToBFloat(single)
                                                     : ir::FloatToHalf(single);
      }
      std::byte bytes[8];
      std::memcpy(bytes, &bits, 8);
      data.insert(data.end(), bytes, bytes + width);
    }
  }
  return buffers;
}

inline absl::StatusOr<OracleResult> RunOracle(const ir::PrimFuncPtr& function,
                                              const Buffers& inputs) {
  absl::StatusOr<HostOracle> oracle = HostOracle::Compile(function);
  if (!oracle.ok()) return oracle.status();
  return oracle->Run(inputs);
}

inline Buffers Interpreted(const ir::PrimFunc& function, Buffers buffers) {
  const std::vector<std::span<std::byte>> spans(buffers.begin(), buffers.end());
  const absl::Status status = ir::Interpret(function, spans);
  EXPECT_TRUE(status.ok()) << status;
  return buffers;
}

inline ir::PrimFuncPtr Parse(const std::string& parameters,
                             const std::string& body) {
  const auto function = ir::ParseFunction(
      absl::StrCat("@T.prim_func\ndef main(", parameters, "):\n", body));
  EXPECT_TRUE(function.ok()) << function.status();
  return function.ok() ? *function : nullptr;
}

// Describes a difference between oracle and interpreter; empty: none.
inline std::string Disagreement(const ir::PrimFuncPtr& function, uint64_t seed,
                                OracleResult* result = nullptr) {
  const Buffers inputs = RandomInputs(*function, seed);
  absl::StatusOr<OracleResult> oracle = RunOracle(function, inputs);
  if (!oracle.ok()) return oracle.status().ToString();
  if (result != nullptr) *result = *oracle;
  return DifferenceFromOracle(*function, *oracle,
                              Interpreted(*function, inputs));
}

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_ORACLE_ORACLE_TEST_SUPPORT_H_
