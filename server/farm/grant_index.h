// Who may get what: devices by what they can measure, ready candidates by what
// they demand. A grant looks at queues and classes of devices, never at every
// device or candidate:
//
//   class (target, kernels, reservation, answers) --- free devices, by name
//                |  fits?
//   queue (user, requirements) --- demand (target, device, kernels) --- ready
//                                                      candidates, in order
//
// A device's answers are which of the requirements that queues have now it
// meets. So a thousand boards of one kind are one class, however their memory
// and labels differ, until a queue asks for them; a new requirement sorts all
// devices anew.
//
// What is granted is what looking at every device in order of name would grant,
// and for each at the candidates of every queue in their order; a property test
// holds it to that.
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
  // A new one neither works nor is free; of a known one that stays as it is.
  void SetDevice(const std::string& name, const Device& device);
  // Working: it may hold leases. Free: it works, and has a slot. `slots`: that
  // SlotsFor counts. Nothing happens where the device is not known.
  void SetState(const std::string& name, bool working, bool free,
                int slots = 0);
  void ForgetDevice(const std::string& name);
  // DeviceFits for a device that is known; remembers what it found.
  bool Fits(const std::string& name, const target::Target& wanted,
            const std::string& wanted_key) const;
  // Of all devices that may have the user's candidates for the target.
  int64_t SlotsFor(const std::string& user, const Requirements& requirements,
                   const target::Target& wanted) const;

  // --- Ready candidates ---
  // What a candidate demands, besides what its queue does.
  struct Demand {
    std::string target_key;
    std::string device;   // name of the only one; empty: any
    std::string kernels;  // database::LibraryOf its trace
    auto operator<=>(const Demand&) const = default;
  };
  // Where a candidate stands; void once it was removed or taken.
  struct Place {
    Queue* queue = nullptr;
    Group* group = nullptr;
    int64_t position = 0;
  };
  // A queue that is not known demands nothing and is nobody's.
  void SetTerms(const std::string& queue, const std::string& user,
                const Requirements& requirements);
  // `target` is that of the demand's key.
  Place Push(const std::string& queue, const std::string& candidate_id,
             const Demand& demand, const target::Target& target, bool front);
  void Remove(const Place& place);
  void RemoveQueue(const std::string& queue);

  // Classes that the devices are of now.
  int class_count() const { return static_cast<int>(classes_.size()); }

  // --- Matching ---
  bool has_ready() const { return !waiting_.empty(); }
  // The first free device after `after`, by name, that fits some ready
  // candidate; nullopt: none.
  std::optional<std::string> NextDevice(const std::string& after) const;
  // The queues that have something for the device, by name. Pointers are valid
  // until the next call of a non-const method.
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
    // Comparing targets is slow: what was found, by the key wanted.
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

  // What decides what a device may get, but for its name.
  std::string ClassKey(const Device& device) const;
  // Requirements that a queue has, or no longer has: `change` is 1 or -1.
  void Ask(const Requirements& requirements, int change);
  // Whether all requirements but the device's name are among those asked, so
  // that devices of one class meet the same of them.
  bool IsAsked(const Requirements& requirements) const;
  // Puts the device into its class.
  void Enter(const std::string& name, Entry& entry);
  static bool Fits(const Class& of, const target::Target& wanted,
                   const std::string& wanted_key);
  static bool Admits(const Device& of, const std::string& name,
                     const std::string& user, const Requirements& requirements);
  bool Matches(const Class& of, const std::string& device, const Queue& queue,
               const Group& group) const;
  // The only device that may have it; empty: any. False: none may.
  static bool FindOnly(const Queue& queue, const Group& group,
                       std::string& device);
  // Of those that the device fits, the one whose front is first; null: none.
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
