// The JavaScript that loads a WebAssembly artifact, in a browser or in Node:
// what the C header is for other artifacts.
#ifndef TILEFARM_COMPILER_CODEGEN_JS_LOADER_H_
#define TILEFARM_COMPILER_CODEGEN_JS_LOADER_H_

#include <span>
#include <string>

#include "compiler/codegen/codegen.h"

namespace tilefarm::codegen {

// An ES module whose load() gives an object with a function for each kernel,
// which takes typed arrays. `functions` are not lowered.
std::string JsKernelLoader(std::span<const LoweredFunction> functions);

// An ES module whose load() gives the model: its inputs and outputs, and run().
// The text of `symbol` is all that it needs to know.
std::string JsModelLoader(const std::string& symbol);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_JS_LOADER_H_
