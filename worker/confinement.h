// Functions by which a helper process permanently gives up rights that it does
// not need. tune-runner calls them in the child that loads an artifact
// (runner/sandbox.h), tune-builder before it reads a candidate
// (builder/sandbox.h). syscall_filter.h has the last step.
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

// The user and group "nobody" of Linux, which own nothing.
inline constexpr uid_t kNobody = 65534;

// Lowers the soft and the hard limit; never raises either.
void LowerLimit(decltype(RLIMIT_AS) resource, rlim_t value);

// Bytes of address space in use; 0: not known.
uint64_t MappedBytes();

// Standard input, output and error become /dev/null. Every other file is
// closed, except those of `kept` from 3 on. False: there is no /dev/null.
bool CloseAllBut(std::vector<int> kept);

// Enters new namespaces; that of CLONE_NEWNET has only a loopback interface
// that is down. The process must have a single thread. Without capabilities it
// also gets a user namespace; with capabilities it does not, because it would
// lose them. False: the system does not allow it, and nothing has changed.
bool EnterNamespaces(int flags);

// For a process in its own mount namespace: replaces all files by an empty file
// system in memory, of at most `bytes`, with a /tmp. False: the system does not
// allow it; the process may have lost some of its mounts then.
bool EnterEmptyFileSystem(uint64_t bytes);

// For a process in its own mount namespace: `folder` becomes an empty file
// system in memory, of at most `bytes` and `files`, that only this process and
// those that it starts see. It ends with them. False: the system does not allow
// it.
bool MountInMemory(const std::string& folder, uint64_t bytes, uint64_t files);

// With Landlock, no file outside `directory` can be opened, made, changed or
// removed, and inside it only regular files and directories. Error: the kernel
// has no Landlock. Needs no_new_privs.
std::string ForbidFilesOutside(const std::string& directory);

// With Landlock, no file can be written, made or removed except beneath
// `folders`; reading stays possible. Beneath `own_folder`, unless it is empty,
// folders can be made and removed and files moved as well. Error: the kernel
// has no Landlock. Needs no_new_privs.
std::string ForbidWritingBut(const std::vector<std::string>& folders,
                             const std::string& own_folder = "");

// Root becomes nobody, without access to other processes' signals, scheduling
// and files. The process has no capabilities, and gets none by executing
// programs. False: this failed for root with the capability for it.
bool GiveUpPrivileges();

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_CONFINEMENT_H_
