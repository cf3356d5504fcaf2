#include "compiler/codegen/ptx_assembler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "compiler/codegen/temporary_folder.h"

namespace tilefarm::codegen {
namespace {

// How logs name the text.
constexpr char kTextName[] = "kernels.ptx";
constexpr absl::Duration kMostTime = absl::Minutes(2);
// Set once, before there are threads.
bool library_alone = false;
constexpr absl::Duration kPollPeriod = absl::Milliseconds(1);

absl::Status Rejected(const std::string& tool, const std::string& log) {
  return absl::InternalError(absl::StrCat(tool, " rejected the PTX:\n", log));
}

// Without lines that differ from run to run, and those of nvJitLink alone.
std::string Normalized(const std::string& log) {
  std::string text;
  for (std::string line : std::vector<std::string>(absl::StrSplit(log, '\n'))) {
    if (absl::StrContains(line, "Compile time =") ||
        absl::StartsWith(line, "info    :") || line.empty()) {
      continue;
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

// The tool's name with the version that the compiler noted in the cubin:
// "Cuda compilation tools, release 13.0, V13.0.88".
std::string ToolOf(const char* name, std::string_view cubin) {
  constexpr std::string_view kBefore = "compilation tools, release ";
  const size_t release = cubin.find(kBefore);
  const size_t version =
      release == cubin.npos ? cubin.npos : cubin.find(", V", release);
  if (version == cubin.npos) return name;
  std::string text;
  for (const char c : cubin.substr(version + 3)) {
    if (!std::isdigit(static_cast<unsigned char>(c)) && c != '.') break;
    text += c;
  }
  return absl::StrCat(name, " ", text);
}

Assembled MakeResult(const char* name, std::string cubin, std::string log) {
  Assembled result;
  result.log = Normalized(log);
  result.kernels = ParseAssemblerLog(result.log);
  result.tool = ToolOf(name, cubin);
  result.cubin = std::move(cubin);
  return result;
}

// ptxas
// ------------------------------------------------------------------------

// Empty if there is none.
std::string FindPtxas() {
  if (const char* chosen = std::getenv("TILEFARM_PTXAS")) return chosen;
  const char* path = std::getenv("PATH");
  std::vector<std::string> folders =
      absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty());
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders) {
    const std::string file = folder + "/ptxas";
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// Runs a program, whose output goes to a file. The result is its status
// (waitpid).
absl::StatusOr<int> Run(const std::vector<std::string>& arguments,
                        const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot run ", arguments[0], ": ", strerror(error)));
  }
  const absl::Time deadline = absl::Now() + kMostTime;
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) {
      return absl::UnavailableError(
          absl::StrCat("lost ", arguments[0], ": ", strerror(errno)));
    }
    if (absl::Now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return absl::DeadlineExceededError(absl::StrCat(
          arguments[0], " took longer than ", absl::FormatDuration(kMostTime)));
    }
    absl::SleepFor(kPollPeriod);
  }
}

absl::StatusOr<Assembled> AssembleByPtxas(std::string_view ptx,
                                          std::string_view architecture) {
  const std::string program = FindPtxas();
  if (program.empty()) {
    return absl::NotFoundError(
        "there is no ptxas in PATH or /usr/local/cuda/bin");
  }
  TF_ASSIGN_OR_RETURN(const TemporaryFolder folder,
                      TemporaryFolder::Create("tilefarm-ptx"));
  const std::string text = (folder / kTextName).string();
  const std::string cubin = (folder / "kernels.cubin").string();
  const std::string output = (folder / "log").string();
  TF_RETURN_IF_ERROR(WriteFile(text, ptx));
  TF_ASSIGN_OR_RETURN(
      const int status,
      Run({program, absl::StrCat("-arch=", std::string(architecture)), "-v",
           text, "-o", cubin},
          output));
  TF_ASSIGN_OR_RETURN(const std::string printed, ReadFile(output));
  const std::string log = absl::StrReplaceAll(printed, {{text, kTextName}});
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Rejected("ptxas",
                    WIFSIGNALED(status)
                        ? absl::StrCat("signal ", WTERMSIG(status), "\n", log)
                        : Normalized(log));
  }
  TF_ASSIGN_OR_RETURN(std::string bytes, ReadFile(cubin));
  return MakeResult("ptxas", std::move(bytes), log);
}

// libnvJitLink
// -------------------------------------------------------------------

struct NvJitLink {
  int (*create)(void**, uint32_t, const char**);
  int (*destroy)(void**);
  int (*add)(void*, int, const void*, size_t, const char*);
  int (*complete)(void*);
  int (*cubin_size)(void*, size_t*);
  int (*cubin)(void*, void*);
  int (*error_log_size)(void*, size_t*);
  int (*error_log)(void*, char*);
  int (*info_log_size)(void*, size_t*);
  int (*info_log)(void*, char*);
};
constexpr int kInputPtx = 2;  // NVJITLINK_INPUT_PTX

// Null if the library lacks a function.
const NvJitLink* Resolve(void* library) {
  static NvJitLink functions;
  const auto find = [library](const char* name, auto& to) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(
        dlsym(library, name));
    return to != nullptr;
  };
  const bool found =
      find("nvJitLinkCreate", functions.create) &&
      find("nvJitLinkDestroy", functions.destroy) &&
      find("nvJitLinkAddData", functions.add) &&
      find("nvJitLinkComplete", functions.complete) &&
      find("nvJitLinkGetLinkedCubinSize", functions.cubin_size) &&
      find("nvJitLinkGetLinkedCubin", functions.cubin) &&
      find("nvJitLinkGetErrorLogSize", functions.error_log_size) &&
      find("nvJitLinkGetErrorLog", functions.error_log) &&
      find("nvJitLinkGetInfoLogSize", functions.info_log_size) &&
      find("nvJitLinkGetInfoLog", functions.info_log);
  return found ? &functions : nullptr;
}

// Opened once, never closed. Null if there is none.
const NvJitLink* OpenNvJitLink() {
  static const NvJitLink* const library = []() -> const NvJitLink* {
    const char* chosen = std::getenv("TILEFARM_NVJITLINK");
    const std::vector<const char*> names =
        chosen == nullptr
            ? std::vector{"libnvJitLink.so.13", "libnvJitLink.so.12"}
            : std::vector{chosen};
    for (const char* name : names) {
      if (*name == 0) continue;  // the process itself
      void* opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (opened == nullptr) continue;
      if (const NvJitLink* functions = Resolve(opened)) return functions;
      dlclose(opened);
    }
    return nullptr;
  }();
  return library;
}

std::string Log(void* link, int (*size)(void*, size_t*),
                int (*get)(void*, char*)) {
  size_t bytes = 0;
  if (size(link, &bytes) != 0 || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (get(link, text.data()) != 0) return "";
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

absl::StatusOr<Assembled> AssembleByNvJitLink(std::string_view ptx,
                                              std::string_view architecture) {
  const NvJitLink* library = OpenNvJitLink();
  if (library == nullptr) {
    return absl::NotFoundError(
        "there is no libnvJitLink.so.13 or .12, and TILEFARM_NVJITLINK names "
        "none");
  }
  const std::string arch = absl::StrCat("-arch=", std::string(architecture));
  const char* options[] = {arch.c_str(), "-verbose"};
  void* link = nullptr;
  int error = library->create(&link, 2, options);
  if (error != 0 || link == nullptr) {
    if (link != nullptr) library->destroy(&link);
    return absl::InternalError(
        absl::StrCat("nvJitLinkCreate: error ", error, " for ", arch));
  }
  // The library wants the final 0.
  const std::string text(ptx);
  error =
      library->add(link, kInputPtx, text.c_str(), text.size() + 1, kTextName);
  if (error == 0) error = library->complete(link);
  const std::string log =
      Log(link, library->error_log_size, library->error_log) +
      Log(link, library->info_log_size, library->info_log);
  std::string cubin;
  size_t bytes = 0;
  if (error == 0) error = library->cubin_size(link, &bytes);
  if (error == 0) {
    cubin.resize(bytes);
    error = library->cubin(link, cubin.data());
  }
  library->destroy(&link);
  if (error != 0) {
    return Rejected("nvJitLink",
                    absl::StrCat("error ", error, "\n", Normalized(log)));
  }
  return MakeResult("nvJitLink", std::move(cubin), log);
}

// The number before `unit` in the line; 0 if there is none.
int64_t NumberBefore(const std::string& line, const std::string& unit) {
  const size_t end = line.find(unit);
  if (end == line.npos) return 0;
  size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])))
    --begin;
  int64_t number = 0;
  return absl::SimpleAtoi(line.substr(begin, end - begin), &number) ? number
                                                                    : 0;
}

}  // namespace

std::vector<Assembled::Kernel> ParseAssemblerLog(std::string_view log) {
  constexpr char kEntry[] = "Compiling entry function '";
  std::vector<Assembled::Kernel> kernels;
  // Lines about a kernel follow its name; those about other functions do not
  // count.
  bool in_kernel = false;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(std::string(log), '\n'))) {
    if (const size_t at = line.find(kEntry); at != line.npos) {
      const size_t begin = at + sizeof(kEntry) - 1;
      kernels.emplace_back().name =
          line.substr(begin, line.find('\'', begin) - begin);
      in_kernel = true;
      continue;
    }
    if (const size_t at = line.find("Function properties for ");
        at != line.npos) {
      in_kernel =
          !kernels.empty() && line.substr(at + 24) == kernels.back().name;
      continue;
    }
    if (kernels.empty()) continue;
    Assembled::Kernel& kernel = kernels.back();
    if (in_kernel && absl::StrContains(line, " bytes stack frame")) {
      kernel.stack_bytes = NumberBefore(line, " bytes stack frame");
      kernel.spill_bytes = NumberBefore(line, " bytes spill stores") +
                           NumberBefore(line, " bytes spill loads");
    }
    if (absl::StrContains(line, ": Used ")) {
      kernel.registers = static_cast<int>(NumberBefore(line, " registers"));
      kernel.static_shared = NumberBefore(line, " bytes smem");
    }
  }
  return kernels;
}

bool KeepPtxAssembler() {
  library_alone = true;
  return OpenNvJitLink() != nullptr;
}

absl::StatusOr<Assembled> AssemblePtx(std::string_view ptx,
                                      std::string_view architecture,
                                      PtxTool tool) {
  if (tool == PtxTool::kPtxas) return AssembleByPtxas(ptx, architecture);
  if (tool == PtxTool::kNvJitLink) {
    return AssembleByNvJitLink(ptx, architecture);
  }
  if (library_alone) return AssembleByNvJitLink(ptx, architecture);
  absl::StatusOr<Assembled> result = AssembleByPtxas(ptx, architecture);
  if (!absl::IsNotFound(result.status())) return result;
  result = AssembleByNvJitLink(ptx, architecture);
  if (!absl::IsNotFound(result.status())) return result;
  return absl::NotFoundError(
      "there is no assembler of PTX: neither ptxas (TILEFARM_PTXAS, PATH, "
      "/usr/local/cuda/bin) nor libnvJitLink (TILEFARM_NVJITLINK)");
}

}  // namespace tilefarm::codegen
