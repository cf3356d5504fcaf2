// Lowered functions that tests build by hand, to run on this machine.
#ifndef TILEFARM_TESTS_CODEGEN_LOWERED_FUNCTION_H_
#define TILEFARM_TESTS_CODEGEN_LOWERED_FUNCTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/codegen/kernel.h"

namespace tilefarm::codegen {

inline constexpr ir::DataType kF32 = ir::DataType::Float(32);

inline Options HostOptions(int cores = 1) {
  Options options;
  options.target = *target::Parse("host,cores=" + std::to_string(cores));
  return options;
}

inline ir::PrimFuncPtr Function(std::vector<ir::Buffer> params, ir::Stmt body) {
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = "kernel";
  function->params = std::move(params);
  function->body = std::move(body);
  return function;
}

inline ir::Buffer Flat(const char* name, ir::DataType dtype, int64_t size,
                       const char* scope = "global") {
  return ir::MakeBuffer(name, dtype, {size}, scope);
}

inline ir::Stmt For(const ir::Var& var, int64_t extent, ir::Stmt body,
                    ir::ForKind kind = ir::ForKind::kSerial) {
  return ir::MakeFor(var, ir::IntConst(extent), std::move(body), kind);
}

}  // namespace tilefarm::codegen

#endif  // TILEFARM_TESTS_CODEGEN_LOWERED_FUNCTION_H_
