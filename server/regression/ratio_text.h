// Ratios as people read them.
#ifndef TILEFARM_SERVER_REGRESSION_RATIO_TEXT_H_
#define TILEFARM_SERVER_REGRESSION_RATIO_TEXT_H_

#include <string>

#include "server/regression/paired_ratio.h"

namespace tilefarm::regression {

// "+5.1 %", "-0.3 %", "0.0 %"; of the ratio 1.051. Ratios from 2 on are
// factors: "x2.31".
std::string ChangeText(double ratio);

// "+3.2 % to +7.0 %"; "unknown" if nothing was measured or it is unbounded.
std::string IntervalText(const RatioInterval& interval);

// "3 %", "2.5 %"; of 0.03.
std::string PercentText(double share);

// "1.234 ms"; "-" of 0.
std::string SecondsText(double seconds);

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_RATIO_TEXT_H_
