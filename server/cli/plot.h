// Curves in a terminal, by the dots of Braille characters or in plain ASCII.
// Pure functions.
#ifndef TILEFARM_SERVER_CLI_PLOT_H_
#define TILEFARM_SERVER_CLI_PLOT_H_

#include <string>
#include <vector>

namespace tilefarm::cli {

struct PlotPoint {
  double x = 0;
  double y = 0;  // > 0: the axis is logarithmic
};

struct Plot {
  std::vector<PlotPoint> points;  // one dot each
  // In order of x; holds its value until the next point, and to the end.
  std::vector<PlotPoint> steps;
  struct Level {
    std::string name;
    double y = 0;
  };
  std::vector<Level> levels;  // horizontal lines
  std::string x_name;         // "trials"
  int columns = 80, rows = 20;
  bool ascii = false;
};

// Lines of at most `columns` characters, each ending with a line feed: the
// curve, times at its left, the axis below, and what stands for what. Empty: no
// point has a time.
std::string DrawPlot(const Plot& plot);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_PLOT_H_
