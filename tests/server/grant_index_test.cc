// Compares the index with a search over everything.
#include "server/farm/grant_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "server/farm/farm.h"
#include "server/farm/shares.h"
#include "tests/server/fake_worker.h"
#include "tests/support/fake_clock.h"

namespace tilefarm::farm {
namespace {

using testing::FakeLink;
using testing::Measured;
using testing::TestHello;

constexpr const char* kTargets[] = {
    "x86-64:znver4,cores=4", "x86-64:znver4,cores=1",
    "x86-64:x86-64-v3,cores=2", "aarch64:cortex-a72,cores=4"};
constexpr const char* kUsers[] = {"ann", "bob", "cyd"};
constexpr const char* kRequired[] = {
    "label.rack=b", "label.rack=c", "cores>=4",           "device=w1",
    "memory>=8GiB", "memory>=9GiB", "library.openblas=1", "library.openblas=2"};
constexpr char kOpenblas[] =
    "sch.call_library(block=b0, kernel=\"openblas.sgemm\")\n";

// A farm's grants by the simple rule: rounds over all devices in the order of
// their names; each gets the first suitable candidate of the first queue that
// has one.
class PlainFarm {
 public:
  struct Device {
    WorkerHello hello;
    int slots = 0;
    std::set<std::string> held;  // candidates
    bool connected = false;
    std::string reserved_for;
  };
  struct Queue {
    QueueTerms terms;
    std::deque<WorkItem> ready;
  };

  explicit PlainFarm(absl::Duration aging) : shares(aging) {}

  bool Fits(const std::string& name, const Device& device,
            const WorkItem& item) const {
    if (!item.device.empty() && item.device != name) return false;
    if (!DeviceFits(*target::Parse(device.hello.device.target), item.target)) {
      return false;
    }
    const std::string kernels = database::LibraryOf(item.trace);
    if (HasKernels(device.hello.device, kernels)) return true;
    for (const auto& [other_name, other] : devices) {
      if (other.connected &&
          DeviceFits(*target::Parse(other.hello.device.target), item.target) &&
          HasKernels(other.hello.device, kernels)) {
        return false;
      }
    }
    return true;
  }

  // The grants now: (device, candidate), in order.
  std::vector<std::pair<std::string, std::string>> Grant(absl::Duration now) {
    std::vector<std::pair<std::string, std::string>> grants;
    for (bool granted = true; granted;) {
      granted = false;
      for (auto& [name, device] : devices) {
        if (!device.connected ||
            static_cast<int>(device.held.size()) >= device.slots) {
          continue;
        }
        std::vector<const std::string*> candidates;
        std::map<std::string, size_t> found;
        for (auto& [queue_name, queue] : queues) {
          if (!device.reserved_for.empty() &&
              device.reserved_for != queue.terms.user) {
            continue;
          }
          if (FirstUnmet(queue.terms.requirements, name, device.hello.device) !=
              nullptr) {
            continue;
          }
          for (size_t i = 0; i < queue.ready.size(); ++i) {
            if (!Fits(name, device, queue.ready[i])) continue;
            candidates.push_back(&queue_name);
            found[queue_name] = i;
            break;
          }
        }
        const std::string* const first = shares.First(candidates, now);
        if (first == nullptr) continue;
        std::deque<WorkItem>& ready = queues[*first].ready;
        const auto at = ready.begin() + static_cast<long>(found[*first]);
        leased[at->candidate_id] = {*at, now, shares.Grant(*first, now)};
        device.held.insert(at->candidate_id);
        grants.emplace_back(name, at->candidate_id);
        ready.erase(at);
        granted = true;
      }
    }
    return grants;
  }

  struct Leased {
    WorkItem item;
    absl::Duration at;
    absl::Duration charged;
  };

  Shares shares;
  std::map<std::string, Device> devices;
  std::map<std::string, Queue> queues;
  std::map<std::string, Leased> leased;
  std::map<std::string, absl::Duration> last_report;
};

class NullSink : public ResultSink {
 public:
  void OnResult(Completion completion) override {
    done.push_back(completion.item.candidate_id);
  }
  std::vector<std::string> done;
};

// Random operations on a farm and on the simple one.
class Life {
 public:
  explicit Life(uint64_t seed)
      : rng_(seed),
        farm_({.timeouts = NothingExpires(),
               .clock = &clock_,
               .fingerprint = testing::kFingerprint}),
        plain_(Timeouts().priority_aging) {
    farm_.SetSink(&sink_);
  }

  void Step() {
    switch (rng_.Below(9)) {
      case 0:
        Connect();
        break;
      case 1:
        Disconnect();
        break;
      case 2:
        Reserve();
        break;
      case 3:
        Slots();
        break;
      case 4:
        OpenOrRemove();
        break;
      case 5:
      case 6:
        Add();
        break;
      default:
        Report();
        break;
    }
    Compare();
    clock_.Advance(absl::Milliseconds(static_cast<int64_t>(rng_.Below(3000))));
  }
  int64_t granted() const { return granted_; }

 private:
  static Timeouts NothingExpires() {
    Timeouts timeouts;
    timeouts.lease_duration = absl::Hours(10'000);
    timeouts.phase_grace = absl::Hours(10'000);
    return timeouts;
  }
  std::string SomeDevice() { return "w" + std::to_string(rng_.Below(6)); }
  std::string SomeQueue() { return "q" + std::to_string(rng_.Below(5)); }

  // Compares what both granted since the last call, per device in order.
  void Compare() {
    std::map<std::string, std::vector<std::string>> plain, real;
    farm_.Tick();  // grants what the operation did not
    for (const auto& [device, candidate] : plain_.Grant(clock_.Monotonic())) {
      plain[device].push_back(candidate);
      ++granted_;
    }
    for (auto& [name, link] : links_) {
      const std::vector<Lease> leases = link->leases();
      for (size_t i = seen_[name]; i < leases.size(); ++i) {
        real[name].push_back(leases[i].item.candidate_id);
        lease_of_[leases[i].item.candidate_id] = leases[i].lease_id;
      }
      seen_[name] = leases.size();
    }
    ASSERT_EQ(real, plain);
    for (const auto& [name, queue] : plain_.queues) {
      ASSERT_EQ(farm_.Counts(name).ready, static_cast<int>(queue.ready.size()));
    }
  }

  void Connect() {
    const std::string name = SomeDevice();
    PlainFarm::Device& device = plain_.devices[name];
    if (device.connected) return;
    WorkerHello hello = TestHello(name);
    // With the same boot id, its leases stay.
    if (device.hello.name.empty()) {
      hello.device.target = kTargets[rng_.Below(4)];
      hello.device.cores = static_cast<int>(rng_.Between(1, 8));
      if (rng_.Chance(0.3)) {
        hello.device.libraries["openblas"] = rng_.Chance(0.5) ? "1" : "2";
      }
      if (rng_.Chance(0.7)) {
        hello.device.labels["rack"] = rng_.Chance(0.5) ? "b" : "c";
      }
      hello.device.labels["name"] = name;
      hello.device.memory_bytes =
          (int64_t{7} << 30) + static_cast<int64_t>(rng_.Below(3u << 30));
      device.hello = hello;
    }
    auto link = std::make_shared<FakeLink>();
    sessions_[name] = *farm_.Connect(device.hello, link);
    links_[name] = link;
    seen_[name] = 0;
    device.connected = true;
    device.slots = 0;
    SetSlots(name);
  }
  void SetSlots(const std::string& name) {
    const int slots = static_cast<int>(rng_.Below(4));
    plain_.devices[name].slots = slots;
    farm_.OnState(sessions_[name], {}, false, slots);
  }
  void Slots() {
    const std::string name = SomeDevice();
    if (plain_.devices[name].connected) SetSlots(name);
  }
  void Disconnect() {
    const std::string name = SomeDevice();
    // A device with leases would lose them eventually, which is not tested
    // here.
    if (!plain_.devices[name].connected || !plain_.devices[name].held.empty()) {
      return;
    }
    farm_.Disconnect(sessions_[name]);
    plain_.devices[name].connected = false;
  }
  void Reserve() {
    const std::string name = SomeDevice();
    if (plain_.devices[name].hello.name.empty()) return;
    const std::string user = rng_.Chance(0.5) ? "" : kUsers[rng_.Below(3)];
    ASSERT_TRUE(farm_.Reserve(name, user, absl::InfiniteFuture()).ok());
    plain_.devices[name].reserved_for = user;
  }
  void OpenOrRemove() {
    const std::string name = SomeQueue();
    const absl::Duration now = clock_.Monotonic();
    if (rng_.Chance(0.3) && plain_.queues.contains(name)) {
      for (auto it = plain_.leased.begin(); it != plain_.leased.end();) {
        if (it->second.item.queue == name) {
          for (auto& [device, state] : plain_.devices) {
            state.held.erase(it->first);
          }
          it = plain_.leased.erase(it);
        } else {
          ++it;
        }
      }
      plain_.queues.erase(name);
      plain_.shares.Close(name);
      farm_.RemoveQueue(name);
      return;
    }
    if (plain_.queues.contains(name)) return;
    QueueTerms terms{.user = kUsers[rng_.Below(3)],
                     .priority = static_cast<int>(rng_.Between(-2, 2))};
    if (rng_.Chance(0.5)) {
      const std::string text = kRequired[rng_.Below(std::size(kRequired))];
      terms.requirements =
          *ParseRequirements({&text, 1}, *target::Parse(kTargets[1]));
    }
    plain_.queues[name].terms = terms;
    plain_.shares.Open(name, terms.user, terms.priority, false, now);
    farm_.OpenQueue(name, terms);
  }
  void Add() {
    const std::string queue = SomeQueue();
    if (!plain_.queues.contains(queue)) return;
    WorkItem item;
    item.candidate_id = "c" + std::to_string(next_++);
    item.queue = queue;
    item.target = *target::Parse(kTargets[rng_.Below(4)]);
    if (rng_.Chance(0.2)) item.device = SomeDevice();
    if (rng_.Chance(0.2)) item.trace = kOpenblas;
    const bool front = rng_.Chance(0.2);
    std::deque<WorkItem>& ready = plain_.queues[queue].ready;
    ready.insert(front ? ready.begin() : ready.end(), item);
    ASSERT_TRUE(farm_.Add(item, front ? Where::kFront : Where::kBack).ok());
  }
  void Report() {
    const std::string name = SomeDevice();
    PlainFarm::Device& device = plain_.devices[name];
    if (!device.connected || device.held.empty()) return;
    const std::string candidate = *device.held.begin();
    const absl::Duration now = clock_.Monotonic();
    const PlainFarm::Leased lease = plain_.leased.at(candidate);
    const auto last = plain_.last_report.find(name);
    const absl::Duration from = last == plain_.last_report.end()
                                    ? lease.at
                                    : std::max(lease.at, last->second);
    if (plain_.queues.contains(lease.item.queue)) {
      plain_.shares.Settle(plain_.queues[lease.item.queue].terms.user,
                           lease.item.queue, lease.charged, now - from);
    }
    plain_.last_report[name] = now;
    plain_.leased.erase(candidate);
    device.held.erase(candidate);
    farm_.OnResult(sessions_[name], {.lease_id = lease_of_[candidate],
                                     .candidate_id = candidate,
                                     .measurement = Measured(1e-3)});
    farm_.Committed(candidate, /*superseded=*/false);
  }

  Rng rng_;
  testing::FakeClock clock_;
  NullSink sink_;
  Farm farm_;
  PlainFarm plain_;
  std::map<std::string, std::shared_ptr<FakeLink>> links_;
  std::map<std::string, int64_t> sessions_;
  std::map<std::string, size_t> seen_;
  std::map<std::string, std::string> lease_of_;
  int64_t next_ = 0;
  int64_t granted_ = 0;
};

class GrantProperty : public ::testing::TestWithParam<uint64_t> {};

TEST_P(GrantProperty, GrantsWhatLookingAtEverythingGrants) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  Life life(GetParam());
  for (int i = 0; i < 600; ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    life.Step();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(life.granted(), 20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GrantProperty,
                         ::testing::Range<uint64_t>(1, 21));

GrantIndex::Device DeviceOf(const std::string& target) {
  GrantIndex::Device device;
  device.target = *target::Parse(target);
  return device;
}

TEST(GrantIndexTest, NobodyIsNextWithoutWorkOrWithoutAFreeDevice) {
  const target::Target wanted = *target::Parse(kTargets[1]);
  GrantIndex index;
  index.SetDevice("a", DeviceOf(kTargets[0]));
  index.SetState("a", /*working=*/true, /*free=*/true);
  EXPECT_FALSE(index.has_ready());
  EXPECT_EQ(index.NextDevice(""), std::nullopt);
  const auto place =
      index.Push("q", "c", {.target_key = wanted.Key()}, wanted, false);
  EXPECT_EQ(index.NextDevice(""), "a");
  EXPECT_EQ(index.NextDevice("a"), std::nullopt);
  index.SetState("a", true, /*free=*/false);
  EXPECT_EQ(index.NextDevice(""), std::nullopt);
  index.SetState("a", true, true);
  index.Remove(place);
  EXPECT_FALSE(index.has_ready());
  EXPECT_EQ(index.Take("q", "a"), std::nullopt);
}

TEST(GrantIndexTest, CandidatesOfSeveralTargetsKeepTheirOrder) {
  const target::Target x86 = *target::Parse(kTargets[1]);
  const target::Target arm = *target::Parse(kTargets[3]);
  GrantIndex index;
  index.SetDevice("arm", DeviceOf(kTargets[3]));
  index.SetDevice("x86", DeviceOf(kTargets[0]));
  index.Push("q", "1", {.target_key = arm.Key()}, arm, false);
  index.Push("q", "2", {.target_key = x86.Key()}, x86, false);
  index.Push("q", "3", {.target_key = x86.Key(), .device = "x86"}, x86, false);
  index.Push("q", "0", {.target_key = x86.Key(), .device = "x86"}, x86, true);
  index.Push("q", "4", {.target_key = x86.Key()}, x86, false);
  for (const char* id : {"0", "2", "3", "4"}) {
    EXPECT_EQ(index.Take("q", "x86"), id);
  }
  EXPECT_EQ(index.Take("q", "x86"), std::nullopt);
  EXPECT_EQ(index.Take("q", "arm"), "1");
  EXPECT_FALSE(index.has_ready());
}

Requirements Required(const std::string& text) {
  return *ParseRequirements({&text, 1}, *target::Parse(kTargets[1]));
}

TEST(GrantIndexTest, BoardsOfOneKindAreAsManyClassesAsQueuesAskFor) {
  const target::Target wanted = *target::Parse(kTargets[1]);
  GrantIndex index;
  constexpr int kBoards = 300;
  for (int i = 0; i < kBoards; ++i) {
    const std::string name = "board-" + std::to_string(i);
    GrantIndex::Device board = DeviceOf(kTargets[0]);
    // The memory that the system reserves differs from boot to boot.
    board.properties.memory_bytes = (int64_t{8} << 30) - 4096 * (i % 7) - i;
    board.properties.labels["serial"] = std::to_string(i);
    board.properties.labels["rack"] = i % 3 == 0 ? "b" : "c";
    index.SetDevice(name, board);
    index.SetState(name, /*working=*/true, /*free=*/true, /*slots=*/2);
  }
  EXPECT_EQ(index.class_count(), 1);
  // Requirements without a job are looked up, too.
  const Requirements rack = Required("label.rack=b");
  EXPECT_EQ(index.SlotsFor("ann", rack, wanted), 200);
  index.SetTerms("q1", "ann", rack);
  EXPECT_EQ(index.class_count(), 2);
  EXPECT_EQ(index.SlotsFor("ann", rack, wanted), 200);
  index.SetTerms("q2", "bob", rack);
  index.SetTerms("q3", "bob", Required("memory>=8GiB"));
  // The only board with all of its 8 GiB is in rack b.
  EXPECT_EQ(index.class_count(), 3);
  index.Push("q3", "c", {.target_key = wanted.Key()}, wanted, false);
  EXPECT_EQ(index.NextDevice(""), "board-0");
  EXPECT_EQ(index.NextDevice("board-0"), std::nullopt);
  index.RemoveQueue("q3");
  index.RemoveQueue("q1");
  EXPECT_EQ(index.class_count(), 2);
  index.SetTerms("q2", "bob", {});
  EXPECT_EQ(index.class_count(), 1);
  EXPECT_EQ(index.SlotsFor("bob", {}, wanted), 2 * kBoards);
}

TEST(GrantIndexTest, TargetsKernelsAndReservationsMakeClasses) {
  GrantIndex index;
  index.SetDevice("a", DeviceOf(kTargets[0]));
  GrantIndex::Device device = DeviceOf(kTargets[0]);
  device.properties.libraries["openblas"] = "1";
  index.SetDevice("b", device);
  device.properties.libraries["openblas"] = "2";  // has the same kernels
  index.SetDevice("c", device);
  EXPECT_EQ(index.class_count(), 2);
  device.reserved_for = "ann";
  index.SetDevice("c", device);
  EXPECT_EQ(index.class_count(), 3);
  index.SetDevice("d", DeviceOf(kTargets[3]));
  EXPECT_EQ(index.class_count(), 4);
  for (const char* name : {"b", "c", "d"}) index.ForgetDevice(name);
  EXPECT_EQ(index.class_count(), 1);
}

}  // namespace
}  // namespace tilefarm::farm
