#include "server/cli/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/cli/format.h"

namespace tilefarm::cli {
namespace {

// Cells for the times at the left.
constexpr int kLabelWidth = 11;
// A Braille character has two columns of four dots.
constexpr int kDotsAcross = 2, kDotsDown = 4;
constexpr int kBraille = 0x2800;
constexpr uint8_t kDots[kDotsDown][kDotsAcross] = {
    {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

std::string Utf8(int code) {
  return {static_cast<char>(0xe0 | code >> 12),
          static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // 0 to 1.
  double Place(double value) const {
    return high > low ? (value - low) / (high - low) : 0.5;
  }
};

// What a cell shows: dots, and the one character that wins in ASCII.
struct Cell {
  uint8_t dots = 0;
  char ascii = ' ';
};

class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns),
        rows_(rows),
        cells_(static_cast<size_t>(columns) * static_cast<size_t>(rows)) {}

  int width() const { return columns_ * kDotsAcross; }
  int height() const { return rows_ * kDotsDown; }
  // From the upper left; later marks win in ASCII.
  void Set(int x, int y, char mark) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    Cell& cell =
        cells_[static_cast<size_t>(y / kDotsDown * columns_ + x / kDotsAcross)];
    cell.dots |= kDots[y % kDotsDown][x % kDotsAcross];
    cell.ascii = mark;
  }
  std::string Row(int row, bool ascii) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[static_cast<size_t>(row * columns_ + column)];
      if (ascii) {
        text += cell.ascii;
      } else {
        text += cell.dots == 0 ? " " : Utf8(kBraille + cell.dots);
      }
    }
    return text;
  }

 private:
  const int columns_, rows_;
  std::vector<Cell> cells_;
};

// Where points of a plot are on its canvas.
struct Scale {
  Range x, y;  // y: logarithms
  int width = 0, height = 0;
  int X(double value) const {
    return static_cast<int>(std::lround(x.Place(value) * (width - 1)));
  }
  int Y(double value) const {
    return static_cast<int>(
        std::lround((1 - y.Place(std::log(value))) * (height - 1)));
  }
};

void DrawSteps(const Plot& plot, const Scale& scale, Canvas& canvas) {
  for (size_t i = 0; i < plot.steps.size(); ++i) {
    const PlotPoint& point = plot.steps[i];
    const bool last = i + 1 == plot.steps.size();
    const int from = scale.X(point.x), y = scale.Y(point.y);
    const int to = last ? canvas.width() - 1 : scale.X(plot.steps[i + 1].x);
    for (int x = from; x <= to; ++x) canvas.Set(x, y, '_');
    if (last) continue;
    const int next = scale.Y(plot.steps[i + 1].y);
    for (int down = std::min(y, next); down <= std::max(y, next); ++down) {
      canvas.Set(to, down, '|');
    }
  }
}

std::string Label(double seconds) {
  return absl::StrFormat("%*s ", kLabelWidth - 1, Seconds(seconds));
}

}  // namespace

std::string DrawPlot(const Plot& plot) {
  Scale scale;
  const auto add = [&](const std::vector<PlotPoint>& points) {
    for (const PlotPoint& point : points) {
      if (!(point.y > 0)) continue;
      scale.x.Add(point.x);
      scale.y.Add(std::log(point.y));
    }
  };
  add(plot.points);
  add(plot.steps);
  if (scale.x.low > scale.x.high) return "";
  for (const Plot::Level& level : plot.levels) {
    if (level.y > 0) scale.y.Add(std::log(level.y));
  }
  const int rows = std::max(plot.rows, 4);
  const int columns = std::max(plot.columns - kLabelWidth - 1, 10);
  Canvas canvas(columns, rows);
  scale.width = canvas.width();
  scale.height = canvas.height();
  for (const Plot::Level& level : plot.levels) {
    if (!(level.y > 0)) continue;
    for (int x = 0; x < canvas.width(); x += 3) {
      canvas.Set(x, scale.Y(level.y), '-');
    }
  }
  for (const PlotPoint& point : plot.points) {
    if (point.y > 0) canvas.Set(scale.X(point.x), scale.Y(point.y), '.');
  }
  DrawSteps(plot, scale, canvas);

  std::string text;
  const std::string bar = plot.ascii ? "|" : "│";
  for (int row = 0; row < rows; ++row) {
    // Times at the ends and in the middle.
    const bool labelled = row == 0 || row == rows / 2 || row == rows - 1;
    const double place = 1 - static_cast<double>(row) / (rows - 1);
    const double seconds =
        std::exp(scale.y.low + place * (scale.y.high - scale.y.low));
    std::string line = canvas.Row(row, plot.ascii);
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text,
                    labelled ? Label(seconds) : std::string(kLabelWidth, ' '),
                    bar, line, "\n");
  }
  absl::StrAppend(&text, std::string(kLabelWidth, ' '), plot.ascii ? "+" : "└");
  for (int i = 0; i < columns; ++i) text += plot.ascii ? "-" : "─";
  const std::string first = absl::StrFormat("%.6g", scale.x.low);
  const std::string last =
      absl::StrFormat("%.6g %s", scale.x.high, plot.x_name);
  const int gap = columns + 1 - static_cast<int>(first.size() + last.size());
  absl::StrAppend(&text, "\n", std::string(kLabelWidth, ' '), first,
                  std::string(static_cast<size_t>(std::max(gap, 1)), ' '), last,
                  "\n");
  for (const Plot::Level& level : plot.levels) {
    if (!(level.y > 0)) continue;
    absl::StrAppend(&text, "  - - ", level.name, " ", Seconds(level.y), "\n");
  }
  return text;
}

}  // namespace tilefarm::cli
