#include "server/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/cli/task_table.h"

namespace tilefarm::cli {

Progress::Progress(const Common& common, const ModelLatency* model)
    : json_(common.json),
      verbose_(common.verbose),
      model_(model),
      terminal_(isatty(2) == 1) {}

void Progress::Show(const v1::JobUpdate& update) {
  if (json_) {
    std::printf("%s\n", UpdateJson(update, model_).dump().c_str());
    std::fflush(stdout);
    return;
  }
  const std::string line = ProgressLine(update, verbose_);
  if (!terminal_) {
    if (line != last_) std::fprintf(stderr, "%s\n", line.c_str());
    last_ = line;
    return;
  }
  winsize size = {};
  if (ioctl(2, TIOCGWINSZ, &size) != 0) size = {};
  // At the end the table is part of the result.
  const bool table = update.state() == "running" && IsWhole(update);
  std::string text = table ? Table(TaskRows(update)) : "";
  text = FitLines(text, line, size.ws_col, size.ws_row);
  // Back to the first line of the previous text, and over it.
  std::string back = "\r";
  if (lines_above_ > 0) absl::StrAppend(&back, "\033[", lines_above_, "A");
  std::fprintf(stderr, "%s\033[J%s", back.c_str(), text.c_str());
  lines_above_ = std::count(text.begin(), text.end(), '\n');
  open_line_ = true;
}

void Progress::Say(const std::string& text) {
  EndLine();
  std::fprintf(stderr, "tune: %s\n", text.c_str());
}

void Progress::EndLine() {
  if (open_line_) std::fputc('\n', stderr);
  open_line_ = false;
  lines_above_ = 0;
}

}  // namespace tilefarm::cli
