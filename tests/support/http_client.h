// Sends raw HTTP bytes, so that tests can send requests that no library would
// send.
#ifndef TILEFARM_TESTS_SUPPORT_HTTP_CLIENT_H_
#define TILEFARM_TESTS_SUPPORT_HTTP_CLIENT_H_

#include <string>

#include "absl/time/time.h"

namespace tilefarm::testing {

// A connection to 127.0.0.1; fd() is negative if there is none.
class RawConnection {
 public:
  // HOST:PORT; only the port is used.
  explicit RawConnection(const std::string& address);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  int fd() const { return fd_; }
  // False if the peer has closed the connection.
  bool Send(const std::string& bytes);
  // Some bytes, as soon as there are any; empty: the peer has closed, or none
  // came within a minute.
  std::string ReadSome();
  // All bytes until the peer closes or the time limit.
  std::string ReadAll(absl::Duration limit = absl::Seconds(30));

 private:
  int fd_ = -1;
};

// The answer of the server at `address` to these bytes.
std::string Exchange(const std::string& address, const std::string& bytes);
// GET with this Host and additional lines ("Origin: x\r\n").
std::string HttpGet(const std::string& address, const std::string& path,
                    const std::string& host = "localhost",
                    const std::string& lines = "");

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_HTTP_CLIENT_H_
