// The manual page of a program, for man(1).
#ifndef TILEFARM_BASE_COMMAND_LINE_MAN_PAGE_H_
#define TILEFARM_BASE_COMMAND_LINE_MAN_PAGE_H_

#include <string>
#include <vector>

#include "base/command_line/command_facts.h"

namespace tilefarm {

// In the man macros of roff, section 1: synopsis, options, commands with their
// options, variables of the environment. `release` is for the footer, and
// `also` the names of other pages.
std::string ManPage(const CommandFacts& program, const std::string& release,
                    const std::vector<std::string>& also);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_COMMAND_LINE_MAN_PAGE_H_
