// Prints a graph as text in the syntax of TVM's Relax.
#ifndef TILEFARM_COMPILER_GRAPH_PRINTER_H_
#define TILEFARM_COMPILER_GRAPH_PRINTER_H_

#include <string>

#include "compiler/graph/graph.h"

namespace tilefarm::graph {

// A module with the distinct PrimFuncs and the graph:
//
//   @I.ir_module
//   class Module:
//       @T.prim_func
//       def nn_relu(in0: ...): ...
//
//       @R.function
//       def main(x: R.Tensor((1, 4), dtype="float32")):
//           with R.dataflow():
//               y: R.Tensor((1, 4), dtype="float32") = R.call_tir(nn_relu,
//               (x,)) R.output(y)
//           return y
//
// Constants appear as `R.const(...)` of their type, without their elements.
// Without `functions`, only the graph is printed.
std::string Print(const Graph& graph, bool functions = true);

// The graph in Graphviz's language: calls as boxes, with types on the edges.
std::string PrintDot(const Graph& graph);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_PRINTER_H_
