// What tests of rules and postprocs look at in a schedule.
#ifndef TILEFARM_TESTS_SPACE_SCHEDULE_TEXT_H_
#define TILEFARM_TESTS_SPACE_SCHEDULE_TEXT_H_

#include <string>
#include <vector>

#include "compiler/ir/printer.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/block_analysis.h"

namespace tilefarm::space {

inline schedule::Schedule Make(const ir::PrimFuncPtr& program) {
  return schedule::Schedule(ir::IRModule{{program}});
}

inline std::vector<std::string> Blocks(const schedule::Schedule& schedule) {
  std::vector<std::string> names;
  for (const auto& block : AllBlocks(*schedule.module().Find("main"))) {
    names.push_back(block->name);
  }
  return names;
}

inline std::string Text(const schedule::Schedule& schedule) {
  return ir::Print(*schedule.module().Find("main"));
}

}  // namespace tilefarm::space

#endif  // TILEFARM_TESTS_SPACE_SCHEDULE_TEXT_H_
