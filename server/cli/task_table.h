// The tasks of a job whose functions are parts of a whole, such as the kernels
// of a model: what each contributes to the time of the whole.
#ifndef TILEFARM_SERVER_CLI_TASK_TABLE_H_
#define TILEFARM_SERVER_CLI_TASK_TABLE_H_

#include <string>
#include <vector>

#include "proto/tilefarm/v1/tune.pb.h"

namespace tilefarm::cli {

bool HasSeveralTargets(const v1::JobUpdate& update);

// Whether the job's tasks have weights, or a target has several tasks.
bool IsWhole(const v1::JobUpdate& update);

// Sums of weight * seconds over the tasks of one target. 0: a task has no such
// time.
struct Projection {
  double tuned = 0;        // best times
  double untuned = 0;      // default schedules
  double unscheduled = 0;  // programs as written
};
Projection Project(const v1::JobUpdate& update, const std::string& target);
// Of a job of one target; without times for a job of several.
Projection Project(const v1::JobUpdate& update);

// The task's part of its target's projected time; negative: not known.
double ShareOf(const v1::JobUpdate& update, const v1::TaskProgress& task);

// A row for each task, the largest share first, below a row of headings.
std::vector<std::vector<std::string>> TaskRows(const v1::JobUpdate& update);
// "projected 1.234 ms, 2.345 ms with default schedules, 9.000 ms unscheduled";
// empty: not known.
std::string ProjectionText(const v1::JobUpdate& update);

// By which algorithms the best schedules compute, if by others than the
// program's loops: a line for each kind, "conv_1, conv_2: winograd F(4,3);
// ...".
std::string AlgorithmsText(const v1::JobUpdate& update);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_TASK_TABLE_H_
