// What a record's schedule does to floats: which rule of ir::FloatRule it
// obeys, and by which algorithms it computes.
#ifndef TILEFARM_COMPILER_DRIVER_KEPT_FLOATS_H_
#define TILEFARM_COMPILER_DRIVER_KEPT_FLOATS_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/float_rule.h"

namespace tilefarm::driver {

// Whether the trace, applied to the program (both as text, a record's), is
// legal under the rule. False where it does not replay. Takes no longer than a
// search for words where the trace uses nothing that the rule may forbid;
// otherwise it replays the part that does.
bool Obeys(ir::FloatRule rule, const std::string& program,
           const std::string& trace);
// The rule is kAsWritten.
bool KeepsFloats(const std::string& program, const std::string& trace);

// For database::BestQuery::keeps_floats; null for the rule that permits
// everything.
std::function<bool(const std::string& program, const std::string& trace)>
ObeysRule(ir::FloatRule rule);

// What a schedule computes in another way than the program's loops, in words:
// "winograd F(4,3)", "online softmax", "tensorized with dot_4x16_i8". Each
// once, in the order of the trace; empty: it has changed loops and layouts
// alone, or is no trace.
std::vector<std::string> AlgorithmsOf(const std::string& trace);

// Both for people: "winograd F(4,3); rounds differently than the program".
// Empty: there is nothing to say.
std::string DescribeAlgorithms(const std::vector<std::string>& algorithms,
                               bool keeps_floats);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_KEPT_FLOATS_H_
