// Scripts that let shells complete the command line of a program.
#ifndef TILEFARM_BASE_COMMAND_LINE_COMPLETION_H_
#define TILEFARM_BASE_COMMAND_LINE_COMPLETION_H_

#include <string>

#include "base/command_line/command_facts.h"

namespace tilefarm {

// Commands, options, and the values of options that have a list of them; files
// everywhere else.
std::string BashCompletion(const CommandFacts& program);
std::string ZshCompletion(const CommandFacts& program);
std::string FishCompletion(const CommandFacts& program);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_COMMAND_LINE_COMPLETION_H_
