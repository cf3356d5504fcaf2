// Which device may get which candidate: devices by what they can measure, ready
// candidates by what they demand. A grant examines queues and classes of
// devices, never every device or candidate:
//
//   class (target, kernels, reservation, answers) --- free devices, by name
//                |  fits?
//   queue (user, requirements) --- demand (target, device, kernels) --- ready
//                                                      candidates, in order
//
// A device's answers say which of the queues' current requirements it meets. A
// thousand boards of one kind are one class, even if their memory and labels
// differ, until a queue has a requirement on these. A new requirement
// classifies all devices again.
//
// The grants are the same as those of examining every device in order of name,
// and for each the candidates of every queue in their order. A property test
// checks this.
//
// Not thread-safe.
#ifndef TILEFARM_SERVER_FARM_GRANT_INDEX_H_
#define TILEFARM_SERVER_FARM_GRANT_INDEX_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/target/target.h"
#include "server/farm/device.h"
#include "server/farm/requirement.h"

namespace tilefarm::farm {

class GrantIndex {
 private:
  struct Class;
  struct Group;
  struct Queue;

 public:
  // --- Devices, by name ---
  struct Device {
    target::Target target;
    DeviceProperties properties;
    std::string reserved_for;  // a user; empty: nobody
  };
  // A new device neither works nor is free; a known one keeps its state.
  void SetDevice(const std::string& name, const Device& device);
  // `working`: it may hold leases. `free`: it works and has a free slot.
  // `slots`: its share of SlotsFor. Nothing happens if the device is not known.
  void SetState(const std::string& name, bool working, bool free,
                int slots = 0);
  void ForgetDevice(const std::string& name);
  // DeviceFits for a known device, with a cache. False: it is not known.
  bool Fits(const std::string& name, const target::Target& wanted,
            const std::string& wanted_key) const;
  // The slots of all devices that may get the user's candidates for the target.
  int64_t SlotsFor(const std::string& user, const Requirements& requirements,
                   const target::Target& wanted) const;

  // --- Ready candidates ---
  // What a candidate demands in addition to its queue.
  struct Demand {
    std::string target_key;
    std::string device;   // name of the only one; empty: any
    std::string kernels;  // database::LibraryOf its trace
    auto operator<=>(const Demand&) const = default;
  };
  // Where a candidate waits. Invalid after it was removed or taken.
  struct Place {
    Queue* queue = nullptr;
    Group* group = nullptr;
    int64_t position = 0;
  };
  // A queue without terms demands nothing and has no user.
  void SetTerms(const std::string& queue, const std::string& user,
                const Requirements& requirements);
  // `target` is that of the demand's key.
  Place Push(const std::string& queue, const std::string& candidate_id,
             const Demand& demand, const target::Target& target, bool front);
  void Remove(const Place& place);
  void RemoveQueue(const std::string& queue);

  // The number of classes that the devices have now.
  int class_count() const { return static_cast<int>(classes_.size()); }

  // --- Matching ---
  bool has_ready() const { return !waiting_.empty(); }
  // The first free device after `after`, by name, that fits some ready
  // candidate; nullopt: none.
  std::optional<std::string> NextDevice(const std::string& after) const;
  // The queues with a candidate that the device fits, by name. Pointers are
  // valid until the next call of a non-const method.
  std::vector<const std::string*> QueuesFor(const std::string& device) const;
  // Removes the queue's first candidate that the device fits.
  std::optional<std::string> Take(const std::string& queue,
                                  const std::string& device);

 private:
  struct Class {
    Device device;  // one of them
    int devices = 0;
    int working = 0;
    int64_t slots = 0;
    std::set<std::string> free;
    // Cached results of DeviceFits, which is slow, by the key of the target.
    mutable std::map<std::string, bool> fits;
  };
  struct Entry {
    Device device;
    std::string class_key;
    Class* of = nullptr;
    bool working = false, free = false;
    int slots = 0;
  };
  struct Group {
    const Demand* demand = nullptr;
    target::Target target;
    std::map<int64_t, std::string> ready;  // by position
  };
  struct Queue {
    const std::string* name = nullptr;
    std::string user;
    Requirements requirements;
    std::string device;              // the only one, where it requires one
    std::map<Demand, Group> groups;  // none is empty
    int64_t first = 0, last = 0;     // positions given so far
  };

  // Everything that decides what a device may get, except its name.
  std::string ClassKey(const Device& device) const;
  // Adds (`change` 1) or removes (-1) the requirements of a queue.
  void Ask(const Requirements& requirements, int change);
  // Whether all requirements except the device's name are among those of
  // queues, so that all devices of a class meet the same ones.
  bool IsAsked(const Requirements& requirements) const;
  // Puts the device into its class.
  void Enter(const std::string& name, Entry& entry);
  static bool Fits(const Class& of, const target::Target& wanted,
                   const std::string& wanted_key);
  static bool Admits(const Device& of, const std::string& name,
                     const std::string& user, const Requirements& requirements);
  bool Matches(const Class& of, const std::string& device, const Queue& queue,
               const Group& group) const;
  // Finds the only device that may get it; empty: any device may. False: none.
  static bool FindOnly(const Queue& queue, const Group& group,
                       std::string& device);
  // The group with the first candidate of those that the device fits; null:
  // none.
  const Group* GroupFor(const Queue& queue, const std::string& name,
                        const Class& of) const;
  void Leave(const std::string& name, Entry& entry);
  void Drop(Queue& queue, Group& group, int64_t position);

  struct Asked {
    Requirement requirement;
    int queues = 0;  // that have it
  };

  std::map<std::string, Asked> asked_;  // by TextOf it
  std::map<std::string, Class> classes_;
  std::unordered_map<std::string, Entry> devices_;
  std::map<std::string, Queue> queues_;
  std::map<std::string, Queue*> waiting_;  // those with ready candidates
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_GRANT_INDEX_H_
