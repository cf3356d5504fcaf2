#include "server/farm/grant_index.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilefarm::farm {
namespace {

// Maximum number of target keys in the cache of a class.
constexpr size_t kMaxFits = 1024;

bool NamesDevice(const Requirement& one) { return one.key == "device"; }

std::string TextOf(const Requirement& one) {
  return absl::StrCat(one.key, one.at_least ? ">=" : "=", one.value);
}

std::string OnlyDevice(const Requirements& requirements) {
  for (const Requirement& one : requirements) {
    if (NamesDevice(one)) return one.value;
  }
  return "";
}

}  // namespace

// --- Devices -----------------------------------------------------------------

void GrantIndex::Leave(const std::string& name, Entry& entry) {
  if (entry.of == nullptr) return;
  entry.of->free.erase(name);
  if (entry.working) --entry.of->working;
  entry.of->slots -= entry.slots;
  if (--entry.of->devices == 0) classes_.erase(entry.class_key);
  entry.of = nullptr;
}

std::string GrantIndex::ClassKey(const Device& device) const {
  std::string key =
      absl::StrCat(device.target.Key(), "\n", device.reserved_for, "\n");
  for (const auto& [library, version] : device.properties.libraries) {
    absl::StrAppend(&key, library, "\n");
  }
  for (const auto& [text, asked] : asked_) {
    const bool meets =
        FirstUnmet({asked.requirement}, "", device.properties) == nullptr;
    key.push_back(meets ? '1' : '0');
  }
  return key;
}

void GrantIndex::Ask(const Requirements& requirements, int change) {
  const size_t before = asked_.size();
  for (const Requirement& one : requirements) {
    if (NamesDevice(one)) continue;
    const auto at = asked_.try_emplace(TextOf(one)).first;
    at->second.requirement = one;
    at->second.queues += change;
    if (at->second.queues == 0) asked_.erase(at);
  }
  // A call either adds or removes requirements, so an equal size means no
  // change.
  if (asked_.size() == before) return;
  for (auto& [name, entry] : devices_) {
    Leave(name, entry);
    Enter(name, entry);
  }
}

bool GrantIndex::IsAsked(const Requirements& requirements) const {
  return std::all_of(requirements.begin(), requirements.end(),
                     [&](const Requirement& one) {
                       return NamesDevice(one) || asked_.contains(TextOf(one));
                     });
}

void GrantIndex::SetDevice(const std::string& name, const Device& device) {
  Entry& entry = devices_[name];
  Leave(name, entry);
  entry.device = device;
  Enter(name, entry);
}

void GrantIndex::Enter(const std::string& name, Entry& entry) {
  entry.class_key = ClassKey(entry.device);
  const auto [at, is_new] = classes_.try_emplace(entry.class_key);
  Class& of = at->second;
  if (is_new) of.device = entry.device;
  ++of.devices;
  if (entry.working) ++of.working;
  of.slots += entry.slots;
  if (entry.free) of.free.insert(name);
  entry.of = &of;
}

void GrantIndex::SetState(const std::string& name, bool working, bool free,
                          int slots) {
  const auto found = devices_.find(name);
  if (found == devices_.end()) return;
  Entry& entry = found->second;
  if (entry.working != working) entry.of->working += working ? 1 : -1;
  if (entry.free != free) {
    if (free) {
      entry.of->free.insert(name);
    } else {
      entry.of->free.erase(name);
    }
  }
  entry.of->slots += slots - entry.slots;
  entry.working = working;
  entry.free = free;
  entry.slots = slots;
}

void GrantIndex::ForgetDevice(const std::string& name) {
  const auto found = devices_.find(name);
  if (found == devices_.end()) return;
  Leave(name, found->second);
  devices_.erase(found);
}

bool GrantIndex::Fits(const Class& of, const target::Target& wanted,
                      const std::string& wanted_key) {
  const auto known = of.fits.find(wanted_key);
  if (known != of.fits.end()) return known->second;
  if (of.fits.size() >= kMaxFits) of.fits.clear();
  const bool fits = DeviceFits(of.device.target, wanted);
  of.fits.emplace(wanted_key, fits);
  return fits;
}

bool GrantIndex::Fits(const std::string& name, const target::Target& wanted,
                      const std::string& wanted_key) const {
  const auto found = devices_.find(name);
  return found != devices_.end() && Fits(*found->second.of, wanted, wanted_key);
}

bool GrantIndex::Admits(const Device& of, const std::string& name,
                        const std::string& user,
                        const Requirements& requirements) {
  return (of.reserved_for.empty() || of.reserved_for == user) &&
         FirstUnmet(requirements, name, of.properties) == nullptr;
}

int64_t GrantIndex::SlotsFor(const std::string& user,
                             const Requirements& requirements,
                             const target::Target& wanted) const {
  const std::string key = wanted.Key();
  const std::string only = OnlyDevice(requirements);
  if (!only.empty()) {
    const auto found = devices_.find(only);
    return found != devices_.end() &&
                   Admits(found->second.device, only, user, requirements) &&
                   Fits(*found->second.of, wanted, key)
               ? found->second.slots
               : 0;
  }
  int64_t slots = 0;
  if (!IsAsked(requirements)) {
    // No queue has these requirements, so devices of one class may differ.
    for (const auto& [name, entry] : devices_) {
      if (entry.slots > 0 && Admits(entry.device, name, user, requirements) &&
          Fits(*entry.of, wanted, key)) {
        slots += entry.slots;
      }
    }
    return slots;
  }
  for (const auto& [class_key, of] : classes_) {
    if (of.slots > 0 && Admits(of.device, "", user, requirements) &&
        Fits(of, wanted, key)) {
      slots += of.slots;
    }
  }
  return slots;
}

// --- Ready candidates --------------------------------------------------------

void GrantIndex::SetTerms(const std::string& queue, const std::string& user,
                          const Requirements& requirements) {
  Queue& entry = queues_[queue];
  entry.user = user;
  Ask(requirements, 1);
  Ask(entry.requirements, -1);
  entry.requirements = requirements;
  entry.device = OnlyDevice(requirements);
}

GrantIndex::Place GrantIndex::Push(const std::string& queue,
                                   const std::string& candidate_id,
                                   const Demand& demand,
                                   const target::Target& target, bool front) {
  const auto at = queues_.try_emplace(queue).first;
  Queue& entry = at->second;
  entry.name = &at->first;
  const auto [group, is_new] = entry.groups.try_emplace(demand);
  if (is_new) {
    group->second.demand = &group->first;
    group->second.target = target;
  }
  const int64_t position = front ? --entry.first : ++entry.last;
  group->second.ready.emplace(position, candidate_id);
  waiting_.emplace(queue, &entry);
  return {.queue = &entry, .group = &group->second, .position = position};
}

void GrantIndex::Drop(Queue& queue, Group& group, int64_t position) {
  group.ready.erase(position);
  if (!group.ready.empty()) return;
  queue.groups.erase(Demand(*group.demand));
  if (queue.groups.empty()) waiting_.erase(*queue.name);
}

void GrantIndex::Remove(const Place& place) {
  Drop(*place.queue, *place.group, place.position);
}

void GrantIndex::RemoveQueue(const std::string& queue) {
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return;
  Ask(found->second.requirements, -1);
  waiting_.erase(queue);
  queues_.erase(found);
}

// --- Matching ----------------------------------------------------------------

bool GrantIndex::FindOnly(const Queue& queue, const Group& group,
                          std::string& device) {
  device = group.demand->device.empty() ? queue.device : group.demand->device;
  return queue.device.empty() || queue.device == device;
}

bool GrantIndex::Matches(const Class& of, const std::string& device,
                         const Queue& queue, const Group& group) const {
  if (!Admits(of.device, device, queue.user, queue.requirements)) return false;
  const std::string& wanted_key = group.demand->target_key;
  if (!Fits(of, group.target, wanted_key)) return false;
  const std::string& kernels = group.demand->kernels;
  if (kernels.empty() || HasKernels(of.device.properties, kernels)) return true;
  // The candidate waits for a device with the libraries. If no working device
  // has them, any device gets it, and it fails with the reason.
  for (const auto& [key, other] : classes_) {
    if (other.working > 0 && Fits(other, group.target, wanted_key) &&
        HasKernels(other.device.properties, kernels)) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> GrantIndex::NextDevice(
    const std::string& after) const {
  const std::string* best = nullptr;
  for (const auto& [queue_name, queue] : waiting_) {
    for (const auto& [demand, group] : queue->groups) {
      std::string only;
      if (!FindOnly(*queue, group, only)) continue;
      if (!only.empty()) {
        const auto found = devices_.find(only);
        if (found != devices_.end() && found->second.free && only > after &&
            (best == nullptr || only < *best) &&
            Matches(*found->second.of, only, *queue, group)) {
          best = &found->first;
        }
        continue;
      }
      for (const auto& [key, of] : classes_) {
        const auto next = of.free.upper_bound(after);
        if (next != of.free.end() && (best == nullptr || *next < *best) &&
            Matches(of, *next, *queue, group)) {
          best = &*next;
        }
      }
    }
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

const GrantIndex::Group* GrantIndex::GroupFor(const Queue& queue,
                                              const std::string& name,
                                              const Class& of) const {
  const Group* best = nullptr;
  for (const auto& [demand, group] : queue.groups) {
    std::string only;
    if (!FindOnly(queue, group, only) || (!only.empty() && only != name)) {
      continue;
    }
    if ((best == nullptr ||
         group.ready.begin()->first < best->ready.begin()->first) &&
        Matches(of, name, queue, group)) {
      best = &group;
    }
  }
  return best;
}

std::vector<const std::string*> GrantIndex::QueuesFor(
    const std::string& device) const {
  std::vector<const std::string*> names;
  const auto found = devices_.find(device);
  if (found == devices_.end()) return names;
  for (const auto& [name, queue] : waiting_) {
    if (GroupFor(*queue, device, *found->second.of) != nullptr) {
      names.push_back(&name);
    }
  }
  return names;
}

std::optional<std::string> GrantIndex::Take(const std::string& queue,
                                            const std::string& device) {
  const auto found = devices_.find(device);
  const auto waiting = waiting_.find(queue);
  if (found == devices_.end() || waiting == waiting_.end()) return std::nullopt;
  Queue& entry = *waiting->second;
  const Group* const group = GroupFor(entry, device, *found->second.of);
  if (group == nullptr) return std::nullopt;
  const auto first = group->ready.begin();
  std::string id = first->second;
  Drop(entry, entry.groups.at(*group->demand), first->first);
  return id;
}

}  // namespace tilefarm::farm
