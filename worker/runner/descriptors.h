// Messages with file descriptors between two processes of this machine.
#ifndef TILEFARM_WORKER_RUNNER_DESCRIPTORS_H_
#define TILEFARM_WORKER_RUNNER_DESCRIPTORS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tilefarm::worker {

inline constexpr size_t kMaxMessageBytes = size_t{128} << 10;
inline constexpr size_t kMaxDescriptors = 4;

// Two ends of a SOCK_SEQPACKET socket, closed by exec. False: errno says why.
bool MakeSocketPair(int ends[2]);

// One whole message. False: the other end is closed, or it is too large.
bool SendMessage(int socket, std::string_view payload,
                 const std::vector<int>& descriptors);

// Waits for a message. The descriptors are the caller's. False: the other end
// is closed, or the message has too many bytes or descriptors.
bool ReceiveMessage(int socket, std::string* payload,
                    std::vector<int>* descriptors);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_DESCRIPTORS_H_
