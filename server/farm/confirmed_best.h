// The best time of a task that other candidates are compared with.
//
// A measurement is stopped early if its candidate cannot reach the best time.
// One wrong time that is too low, by chance or by a lie, would stop every
// honest candidate. A time is therefore confirmed by a second one that is as
// good: of another device, or, for a device's own candidates, of another
// candidate that the same device measured.
#ifndef TILEFARM_SERVER_FARM_CONFIRMED_BEST_H_
#define TILEFARM_SERVER_FARM_CONFIRMED_BEST_H_

#include <map>
#include <string>

namespace tilefarm::farm {

// A value type.
class ConfirmedBest {
 public:
  // A candidate's time, measured in full and verified.
  void Note(const std::string& device_id, double seconds);
  // The time that candidates on the device are compared with: the second best
  // of its own times, or of the devices' best times, whichever is less. 0:
  // none.
  double For(const std::string& device_id) const;

 private:
  struct Times {
    double best = 0, second = 0;  // 0: none
  };
  static void Insert(double seconds, Times& times);

  std::map<std::string, Times> devices_;
  // The device with the best time, and the best times of two devices.
  std::string leader_;
  Times of_devices_;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_CONFIRMED_BEST_H_
