// Runs random programs with random traces in every possible way
// (differential.h). Reports differences, reduced, with the seed:
//
//   program_fuzz --count 20000 --jobs 2
//   program_fuzz --seed 4711 --count 1        one case again
//   program_fuzz --program F.py [--trace T]   a given one
//
// With --gpu, on the simulator of GPUs with their schedules
// (gpu_differential.h): `--traces` are points of the design space, and twice as
// many by hand.
//
// Cases run in child processes, so that a crash of the compiler is a finding.
// Exits with 1 if there is a difference.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/rng.h"
#include "compiler/ir/parser.h"
#include "tests/property/differential.h"
#include "tests/property/gpu_differential.h"
#include "tests/property/in_child.h"
#include "tests/property/random_text_program.h"
#include "tests/property/random_trace.h"
#include "tests/property/shrink.h"

namespace tilefarm::property {
namespace {

struct Flags {
  uint64_t seed = 1;
  int count = 2000;
  double seconds = 1e9;
  int jobs = 2;
  int traces = 3;
  int max_findings = 10;
  bool shrink = true;
  bool verbose = false;
  bool gpu = false;
  std::string gpu_target;
  std::string program;
  std::string trace;
};

// One program in six is made of operators: only those reach primitives that
// need a whole convolution or softmax.
constexpr double kOperatorShare = 1.0 / 6;
// Time limits of a case, and of reducing one.
constexpr unsigned kCaseSeconds = 60;
constexpr int kChunk = 16;

Case MakeCase(const Flags& flags, uint64_t seed, PrimitiveCounts* counts) {
  if (flags.gpu) {
    return MakeGpuCase(seed, flags.traces, 2 * flags.traces, flags.gpu_target,
                       counts);
  }
  Rng rng(seed);
  Case c;
  c.input_seed = seed;
  const TextProgram program = RandomTextProgram(rng, kOperatorShare);
  c.text = program.text;
  c.exact = program.exact;
  const auto parsed = ir::ParseFunction(c.text);
  if (!parsed.ok()) return c;
  for (int i = 0; i < flags.traces; ++i) {
    const schedule::Schedule schedule = RandomSchedule(
        *parsed, static_cast<int>(rng.Between(1, 16)), rng, counts);
    c.traces.push_back(schedule.trace().Print());
  }
  return c;
}

CaseReport Check(const Flags& flags, const Case& c, PrimitiveCounts* counts) {
  return flags.gpu ? CheckGpuCase(c, counts) : CheckCase(c);
}

// --- Children ------------------------------------------------------------

// The kind of a failure: without numbers and names of elements.
std::string KindOf(const std::string& variant, const std::string& what) {
  const std::string head = what.substr(0, what.find(':'));
  return absl::StrCat(variant.substr(0, variant.find(' ')), "/", head);
}

// The finding as text, empty if there is none; its first line is the kind.
std::string FindingOf(const Flags& flags, const Case& c, Verdict* verdict) {
  std::string crashed;
  const std::string text = InChild(
      [&](std::ostream& out) {
        const CaseReport report = Check(flags, c, nullptr);
        out << static_cast<int>(report.verdict) << "\n";
        out << KindOf(report.variant, report.what) << "\n"
            << report.variant << ": " << report.what << "\n";
        if (report.variant == "default") out << report.trace;
      },
      kCaseSeconds, &crashed);
  if (!crashed.empty()) {
    *verdict = Verdict::kDiffer;
    return absl::StrCat("crash\n", crashed, "\n");
  }
  const size_t line = text.find('\n');
  *verdict = static_cast<Verdict>(std::atoi(text.c_str()));
  if (*verdict == Verdict::kAgree || *verdict == Verdict::kUndefined) return "";
  return text.substr(line + 1);
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

void PrintCase(const Case& c) {
  std::cout << c.text << "\n";
  for (const std::string& trace : c.traces) {
    std::cout << "--- trace\n" << trace << "\n";
  }
  std::cout << std::flush;
}

// Prints the finding if there is one.
Verdict Report(const Flags& flags, uint64_t seed, const Case& c) {
  Verdict verdict;
  const std::string finding = FindingOf(flags, c, &verdict);
  if (verdict != Verdict::kDiffer) return verdict;
  std::cout << "=== seed " << seed << "\n" << finding;
  Case small = c;
  if (flags.shrink) {
    const std::string kind = FirstLine(finding);
    small = Shrink(c, [&](const Case& smaller) {
      Verdict v;
      const std::string f = FindingOf(flags, smaller, &v);
      return v == Verdict::kDiffer && FirstLine(f) == kind;
    });
    std::cout << "made small: " << FindingOf(flags, small, &verdict);
  }
  PrintCase(small);
  return Verdict::kDiffer;
}

// --- Many cases ----------------------------------------------------------

struct Tally {
  int agree = 0, undefined = 0, refused = 0, differ = 0;
  std::map<std::string, int> reasons;  // of rejections
  PrimitiveCounts counts;

  void Count(Verdict verdict) {
    switch (verdict) {
      case Verdict::kAgree:
        ++agree;
        break;
      case Verdict::kUndefined:
        ++undefined;
        break;
      case Verdict::kRefused:
        ++refused;
        break;
      case Verdict::kDiffer:
        ++differ;
        break;
    }
  }
};

// Writes the cases of a chunk to `out`, one line each.
void RunChunk(const Flags& flags, uint64_t first, int count,
              std::ostream& out) {
  PrimitiveCounts counts;
  for (int i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const CaseReport report =
        Check(flags, MakeCase(flags, seed, &counts), &counts);
    out << "case " << seed << " " << static_cast<int>(report.verdict) << " "
        << report.variant << ": " << FirstLine(report.what) << "\n";
  }
  PrintCounts(counts, out);
}

struct Job {
  pid_t pid = -1;
  int fd = -1;
  uint64_t first = 0;
  int count = 0;
  std::string text;
};

Job Start(const Flags& flags, uint64_t first, int count) {
  int fds[2];
  if (pipe(fds) != 0) std::abort();
  Job job;
  job.first = first;
  job.count = count;
  job.fd = fds[0];
  std::cout.flush();
  job.pid = fork();
  if (job.pid == 0) {
    close(fds[0]);
    alarm(kCaseSeconds * static_cast<unsigned>(count));
    std::ostringstream out;
    RunChunk(flags, first, count, out);
    const std::string text = out.str();
    const bool written = write(fds[1], text.data(), text.size()) ==
                         static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(fds[1]);
  return job;
}

void Take(const Flags& flags, Job& job, Tally& tally) {
  int status = 0;
  waitpid(job.pid, &status, 0);
  close(job.fd);
  std::vector<uint64_t> suspects;
  if (status != 0) {
    for (int i = 0; i < job.count; ++i) {
      suspects.push_back(job.first + static_cast<uint64_t>(i));
    }
  }
  for (const absl::string_view line : absl::StrSplit(job.text, '\n')) {
    std::istringstream in{std::string(line)};
    std::string word;
    in >> word;
    if (word == "primitive") {
      AddCounts(std::string(line), tally.counts);
    } else if (word == "case") {
      uint64_t seed = 0;
      int verdict = 0;
      in >> seed >> verdict;
      std::string reason;
      std::getline(in, reason);
      if (status != 0) continue;  // all of them run again
      if (static_cast<Verdict>(verdict) == Verdict::kDiffer) {
        suspects.push_back(seed);
        continue;
      }
      tally.Count(static_cast<Verdict>(verdict));
      if (static_cast<Verdict>(verdict) != Verdict::kRefused) continue;
      if (flags.verbose) {
        std::cout << "refused " << seed << reason << "\n";
        PrimitiveCounts unused;
        PrintCase(MakeCase(flags, seed, &unused));
      }
      ++tally.reasons[reason.substr(0, reason.find(':'))];
    }
  }
  for (const uint64_t seed : suspects) {
    if (tally.differ >= flags.max_findings) {
      ++tally.differ;
      continue;
    }
    // Generating a case may crash, too.
    std::string crashed;
    InChild(
        [&](std::ostream&) {
          PrimitiveCounts counts;
          MakeCase(flags, seed, &counts);
        },
        kCaseSeconds, &crashed);
    if (!crashed.empty()) {
      std::cout << "=== seed " << seed << "\nscheduling: " << crashed << "\n";
      Rng rng(seed);
      if (!rng.Chance(kOperatorShare)) {
        std::cout << RandomTextProgram(rng).text << std::flush;
      }
      ++tally.differ;
      continue;
    }
    PrimitiveCounts counts;
    const Verdict verdict = Report(flags, seed, MakeCase(flags, seed, &counts));
    if (status == 0 && verdict != Verdict::kDiffer) {
      std::cout << "=== seed " << seed << ": failed once, not again\n";
      ++tally.differ;
      continue;
    }
    tally.Count(verdict);
  }
}

int RunMany(const Flags& flags) {
  Tally tally;
  const absl::Duration start = Clock::Real().Monotonic();
  const auto in_time = [&] {
    return absl::ToDoubleSeconds(Clock::Real().Monotonic() - start) <
           flags.seconds;
  };
  std::vector<Job> jobs;
  int started = 0;
  while (!jobs.empty() || (started < flags.count && in_time())) {
    while (static_cast<int>(jobs.size()) < flags.jobs &&
           started < flags.count && in_time() &&
           tally.differ < flags.max_findings) {
      const int count = std::min(kChunk, flags.count - started);
      jobs.push_back(
          Start(flags, flags.seed + static_cast<uint64_t>(started), count));
      started += count;
    }
    if (jobs.empty()) break;
    std::vector<pollfd> fds;
    for (const Job& job : jobs) fds.push_back({job.fd, POLLIN, 0});
    poll(fds.data(), fds.size(), -1);
    for (size_t i = jobs.size(); i-- > 0;) {
      if (fds[i].revents == 0) continue;
      char buffer[1 << 16];
      const ssize_t n = read(jobs[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        jobs[i].text.append(buffer, static_cast<size_t>(n));
        continue;
      }
      Take(flags, jobs[i], tally);
      jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  std::cout << started << " programs from seed " << flags.seed << ": "
            << tally.agree << " agree, " << tally.undefined
            << " read what nothing wrote, " << tally.refused << " refused, "
            << tally.differ << " differ\n";
  for (const auto& [reason, count] : tally.reasons) {
    std::cout << "  refused by" << reason << ": " << count << "\n";
  }
  for (const auto& [name, tried] : tally.counts.tried) {
    std::cout << "  " << name << ": " << tally.counts.accepted[name] << " of "
              << tried << " accepted\n";
  }
  // A generator whose programs are rejected, or left out, tests little.
  const int checked = tally.agree + tally.differ;
  if (started >= 500 && 2 * checked < started) {
    std::cout << "fewer than half of the programs were checked\n";
    return 1;
  }
  return tally.differ == 0 ? 0 : 1;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    std::cerr << "program_fuzz: cannot read " << path << "\n";
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

int RunGiven(const Flags& flags) {
  Case c;
  c.gpu_target = flags.gpu_target;
  c.text = ReadFile(flags.program);
  c.exact = false;
  if (!flags.trace.empty()) c.traces.push_back(ReadFile(flags.trace));
  Verdict verdict;
  const std::string finding = FindingOf(flags, c, &verdict);
  static const char* const kNames[] = {"agree", "undefined", "refused",
                                       "differ"};
  std::cout << kNames[static_cast<int>(verdict)] << "\n" << finding;
  return verdict == Verdict::kDiffer ? 1 : 0;
}

}  // namespace
}  // namespace tilefarm::property

int main(int argc, char** argv) {
  using tilefarm::property::Flags;
  Flags flags;
  CLI::App app("Random programs and traces, run every way there is");
  app.add_option("--seed", flags.seed, "of the first case");
  app.add_option("--count", flags.count, "cases");
  app.add_option("--seconds", flags.seconds, "no new cases after that");
  app.add_option("--jobs", flags.jobs, "processes");
  app.add_option("--traces", flags.traces, "for each program");
  app.add_option("--max-findings", flags.max_findings, "then stop");
  app.add_flag("--shrink,!--no-shrink", flags.shrink, "make findings small");
  app.add_flag("--gpu", flags.gpu, "schedules of GPUs, on the simulator");
  app.add_option("--gpu-target", flags.gpu_target,
                 "with --gpu: on this device of OpenCL, or as PTX for this "
                 "GPU of CUDA, instead");
  app.add_flag("--verbose", flags.verbose, "name what is refused");
  app.add_option("--program", flags.program, "a file instead of random ones");
  app.add_option("--trace", flags.trace, "for --program");
  CLI11_PARSE(app, argc, argv);
  if (!flags.program.empty()) return tilefarm::property::RunGiven(flags);
  return tilefarm::property::RunMany(flags);
}
