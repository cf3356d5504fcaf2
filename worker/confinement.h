// Steps by which a helper process gives up what it does not need, for good.
// tune-runner takes them in the child that loads an artifact
// (runner/sandbox.h), tune-builder before it looks at a candidate
// (builder/sandbox.h); syscall_filter.h has the last one.
//
// Knows the C and C++ standard libraries only: tune-runner links nothing else.
#ifndef TILEFARM_WORKER_CONFINEMENT_H_
#define TILEFARM_WORKER_CONFINEMENT_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tilefarm::worker {

// The user and group "nobody" of Linux, who owns nothing.
inline constexpr uid_t kNobody = 65534;

// Lowers the soft and the hard limit; never raises either.
void LowerLimit(decltype(RLIMIT_AS) resource, rlim_t value);

// Bytes of address space in use; 0 where unknown.
uint64_t MappedBytes();

// Input, output and errors become /dev/null, and every other file is closed but
// those of `kept` from 3 on. False where there is no /dev/null.
bool CloseAllBut(std::vector<int> kept);

// New namespaces: CLONE_NEWNET has no interface but a loopback that is down.
// Of a process with one thread. A process without capabilities gets a user
// namespace as well; one that has some does not, as it would lose them. False,
// with nothing changed, where the system does not allow it.
bool EnterNamespaces(int flags);

// In a mount namespace of its own: from now on there are no files but an empty
// file system in memory, of at most `bytes`, with a /tmp. False where the
// system does not allow it; then the process may have lost some of its mounts.
bool EnterEmptyFileSystem(uint64_t bytes);

// Where the kernel has Landlock: no file outside `directory` can be opened,
// made, changed or removed, and inside only regular files and directories. An
// error otherwise. Needs no_new_privs.
std::string ForbidFilesOutside(const std::string& directory);

// Root becomes nobody: signals to others, their scheduling and files are out of
// reach. No capabilities, and none by executing anything. False where that
// fails for root with the capability for it.
bool GiveUpPrivileges();

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_CONFINEMENT_H_
