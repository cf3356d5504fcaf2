// The progress of a job that is watched.
#ifndef TILEFARM_SERVER_CLI_PROGRESS_H_
#define TILEFARM_SERVER_CLI_PROGRESS_H_

#include <cstdint>
#include <string>

#include "proto/tilefarm/v1/tune.pb.h"
#include "server/cli/commands.h"
#include "server/cli/format.h"

namespace tilefarm::cli {

// Progress on stderr: on a terminal one line that is rewritten, below the table
// of the tasks if they are parts of a whole; elsewhere a line per update. With
// --json, a line of JSON per update on stdout.
class Progress {
 public:
  // `model`: null unless the job tunes a model. It outlives the progress.
  Progress(const Common& common, const ModelLatency* model);

  void Show(const v1::JobUpdate& update);
  // A message on a line of its own.
  void Say(const std::string& text);
  void EndLine();

 private:
  const bool json_, verbose_;
  const ModelLatency* const model_;
  const bool terminal_;
  bool open_line_ = false;
  int64_t lines_above_ = 0;  // the open one
  std::string last_;
};

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_PROGRESS_H_
