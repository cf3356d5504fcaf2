#include "worker/runner/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace tilefarm::worker {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(kMaxDescriptors * sizeof(int));

}  // namespace

bool MakeSocketPair(int ends[2]) {
  return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0;
}

bool SendMessage(int socket, std::string_view payload,
                 const std::vector<int>& descriptors) {
  if (payload.size() > kMaxMessageBytes ||
      descriptors.size() > kMaxDescriptors) {
    return false;
  }
  iovec part = {const_cast<char*>(payload.data()), payload.size()};
  alignas(cmsghdr) std::array<char, kControlBytes> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const size_t bytes = descriptors.size() * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  for (;;) {
    const ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    return n == static_cast<ssize_t>(payload.size());
  }
}

bool ReceiveMessage(int socket, std::string* payload,
                    std::vector<int>* descriptors) {
  payload->assign(kMaxMessageBytes, '\0');
  descriptors->clear();
  iovec part = {payload->data(), payload->size()};
  alignas(cmsghdr) std::array<char, kControlBytes> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n;
  do {
    n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); n >= 0 && header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    descriptors->resize(count);
    memcpy(descriptors->data(), CMSG_DATA(header), count * sizeof(int));
  }
  if (n <= 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    for (const int fd : *descriptors) close(fd);
    descriptors->clear();
    return false;
  }
  payload->resize(static_cast<size_t>(n));
  return true;
}

}  // namespace tilefarm::worker
