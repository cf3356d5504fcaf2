// A candidate as text, for messages of failed tests.
#ifndef TILEFARM_TESTS_SUPPORT_CANDIDATE_TEXT_H_
#define TILEFARM_TESTS_SUPPORT_CANDIDATE_TEXT_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ir/printer_text.h"
#include "compiler/space/design_space.h"

namespace tilefarm::space {

inline std::string CandidateText(const Candidate& candidate) {
  std::string text = absl::StrCat(candidate.sketch, ":");
  for (const ir::Attr& decision : candidate.decisions) {
    absl::StrAppend(&text, " ", ir::AttrText(decision));
  }
  return text;
}

}  // namespace tilefarm::space

#endif  // TILEFARM_TESTS_SUPPORT_CANDIDATE_TEXT_H_
