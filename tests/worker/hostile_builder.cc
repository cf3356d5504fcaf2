// A tune-builder whose compiler was taken over: it confines itself like the
// real one and then does what a request's trace says. The reply's error is the
// result.
//
//   read PATH, make PATH, environ, files, network PORT, socket, signal PID,
//   run, code, thread
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "worker/builder/sandbox.h"
#include "worker/builder_protocol.h"

extern char** environ;

namespace tilefarm::worker {
namespace {

std::string Outcome(bool ok) { return ok ? "done" : strerror(errno); }

std::string ReadIt(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY);
  if (fd < 0) return strerror(errno);
  char bytes[4096];
  const ssize_t n = read(fd, bytes, sizeof bytes);
  close(fd);
  return "done: " + std::string(bytes, n < 0 ? 0 : static_cast<size_t>(n));
}

std::string Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return strerror(errno);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return Outcome(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
}

// Open descriptors without those of the frames.
std::string Files(int input_fd, int output_fd) {
  std::string open_files;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fd == input_fd || fd == output_fd || fcntl(fd, F_GETFD) < 0) continue;
    open_files += std::to_string(fd) + " ";
  }
  return open_files;
}

std::string Environment() {
  std::string all;
  for (char** one = environ; *one != nullptr; ++one) {
    all += std::string(*one) + "\n";
  }
  return all;
}

std::string MakeCode() {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return Outcome(page != MAP_FAILED);
}

std::string Act(const std::string& act, int input_fd, int output_fd) {
  std::istringstream words(act);
  std::string word, argument;
  words >> word >> argument;
  if (word == "read") return ReadIt(argument);
  if (word == "make") {
    return Outcome(open(argument.c_str(), O_WRONLY | O_CREAT, 0600) >= 0);
  }
  if (word == "environ") return Environment();
  if (word == "files") return Files(input_fd, output_fd);
  if (word == "network") return Connect(std::stoi(argument));
  if (word == "socket") return Outcome(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
  if (word == "signal") return Outcome(kill(std::stoi(argument), 0) == 0);
  if (word == "run") {
    execl("/bin/sh", "sh", "-c", "exit 0", nullptr);
    return strerror(errno);
  }
  if (word == "code") return MakeCode();
  if (word == "thread") {
    std::string ran = "no";
    std::thread([&] { ran = "done"; }).join();
    return ran;
  }
  return "not an act";
}

int Serve(int input_fd, int output_fd, const BuilderConfinement& confinement) {
  for (;;) {
    Frame frame;
    if (ReadFrame(input_fd, -1, &frame) != FrameStatus::kOk) return 0;
    if (frame.type == static_cast<uint32_t>(BuilderFrame::kHello)) {
      WriteFrame(output_fd, -1,
                 static_cast<uint32_t>(BuilderFrame::kHelloReply),
                 Encode(BuilderHelloReply{"0", "hostile", confinement.parts,
                                          confinement.shortfall,
                                          confinement.directory}));
      continue;
    }
    BuildRequest request;
    if (!Decode(frame.payload, &request)) return 2;
    BuildReply reply;
    reply.error = Act(request.trace, input_fd, output_fd);
    WriteFrame(output_fd, -1, static_cast<uint32_t>(BuilderFrame::kBuildReply),
               Encode(reply));
  }
}

}  // namespace
}  // namespace tilefarm::worker

int main() {
  const int input_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int output_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const auto confinement =
      tilefarm::worker::EnterBuilderSandbox({input_fd, output_fd}, 0);
  if (!confinement.ok()) return 1;
  return tilefarm::worker::Serve(input_fd, output_fd, *confinement);
}
