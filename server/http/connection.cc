#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <functional>
#include <type_traits>
#include <utility>

#include "absl/time/time.h"
#include "server/http/connection_internal.h"
#include "server/http/event_queue_internal.h"
#include "server/http/tls_internal.h"

namespace tilefarm::http {
namespace {

namespace asio = boost::asio;
using Error = boost::system::error_code;
using Plain = boost::beast::tcp_stream;
using Tls = asio::ssl::stream<Plain>;

constexpr char kEndOfHead[] = "\r\n\r\n";
// Bytes read of what a client sends after its last request.
constexpr size_t kMostDrained = 64 << 10;

// What an exchange needs of its connection.
class Answered : public Connection {
 public:
  virtual void Write(Response response) = 0;
  virtual void BeginStream(std::shared_ptr<EventQueue> queue,
                           std::function<void()> closed) = 0;
  virtual void SendEvents() = 0;
};

class PendingExchange : public Exchange {
 public:
  PendingExchange(std::shared_ptr<Shared> shared,
                  std::weak_ptr<Answered> connection, Request request)
      : shared_(std::move(shared)),
        connection_(std::move(connection)),
        request_(std::move(request)) {}
  ~PendingExchange() override {
    if (!answered_) Answer(Refusal(500, "the server has no answer"));
  }

  const Request& request() const override { return request_; }
  Answers answers() const override { return shared_->Counts(); }

  void Answer(Response response) override {
    answered_ = true;
    asio::post(shared_->io, [connection = connection_,
                             response = std::move(response)]() mutable {
      const auto there = connection.lock();
      if (there != nullptr) there->Write(std::move(response));
    });
  }

  std::shared_ptr<EventStream> Stream(std::function<void()> closed) override {
    if (shared_->streams.fetch_add(1) >= shared_->limits.streams) {
      --shared_->streams;
      Answer(Refusal(503, "too many pages are watching; try again later"));
      return nullptr;
    }
    answered_ = true;
    auto queue = std::make_shared<EventQueue>(
        shared_->limits.unread_bytes,
        // Weakly: what is posted to the context holds the queue.
        [weak = std::weak_ptr<Shared>(shared_), connection = connection_] {
          const auto shared = weak.lock();
          if (shared == nullptr) return;
          asio::post(shared->io, [connection] {
            const auto there = connection.lock();
            if (there != nullptr) there->SendEvents();
          });
        });
    asio::post(shared_->io, [shared = shared_.get(), connection = connection_,
                             queue, closed = std::move(closed)]() mutable {
      const auto there = connection.lock();
      if (there != nullptr) {
        there->BeginStream(std::move(queue), std::move(closed));
      } else {
        queue->End();
        --shared->streams;
        closed();
      }
    });
    return queue;
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::weak_ptr<Answered> connection_;
  const Request request_;
  bool answered_ = false;
};

// `Layer`: Plain or Tls.
template <typename Layer>
class LayeredConnection
    : public Answered,
      public std::enable_shared_from_this<LayeredConnection<Layer>> {
 public:
  static constexpr bool kTls = std::is_same_v<Layer, Tls>;

  template <typename... Arguments>
  LayeredConnection(std::shared_ptr<Shared> shared,
                    std::shared_ptr<asio::ssl::context> context,
                    Arguments&&... arguments)
      : shared_(std::move(shared)),
        context_(std::move(context)),
        stream_(std::forward<Arguments>(arguments)...) {}

  void Start() override {
    Limit(limits().lifetime);
    if constexpr (kTls) {
      stream_.async_handshake(
          asio::ssl::stream_base::server,
          [self = this->shared_from_this()](const Error& error) {
            if (error) return self->Abort();
            self->ReadHead();
          });
    } else {
      ReadHead();
    }
  }

  void Abort() override {
    const auto self = this->shared_from_this();
    Error ignored;
    Socket().close(ignored);
    shared_->connections.remove(self);
    EndBody();
    if (!streams_) return;
    streams_ = false;
    --shared_->streams;
    queue_->End();
    closed_();
  }

  void Write(Response response) override {
    const bool keep = request_.keep_alive && !last_;
    shared_->Count(response.status);
    out_ = Serialize(response, request_.head, keep);
    Limit(limits().lifetime + TimeFor(out_.size()));
    asio::async_write(stream_, asio::buffer(out_),
                      [self = this->shared_from_this(), keep](
                          const Error& error, size_t /*size*/) {
                        if (error) return self->Abort();
                        self->out_.clear();
                        keep ? self->AwaitRequest() : self->SayGoodbye();
                      });
  }

  void BeginStream(std::shared_ptr<EventQueue> queue,
                   std::function<void()> closed) override {
    streams_ = true;
    queue_ = std::move(queue);
    closed_ = std::move(closed);
    shared_->Count(200);
    out_ = SerializeHead({.content_type = "text/event-stream"}, -1, false);
    // Waits for the end of the connection without a limit; writes have theirs.
    Lowest().expires_never();
    ReadNothing();
    WriteEvents();
  }

  void SendEvents() override {
    if (!streams_) return;
    if (queue_->aborted()) return Abort();
    if (!out_.empty()) return;  // it goes on after that write
    EventQueue::Next next = queue_->Take();
    out_ = std::move(next.bytes);
    last_ |= next.closing;
    if (!out_.empty()) return WriteEvents();
    if (last_) Abort();
  }

  void Beat() override {
    if (!streams_ || !out_.empty()) return;
    out_ = ":\n\n";
    WriteEvents();
  }

 private:
  const HttpLimits& limits() const { return shared_->limits; }
  Plain& Lowest() { return boost::beast::get_lowest_layer(stream_); }
  asio::ip::tcp::socket& Socket() { return Lowest().socket(); }
  // Of the operations that begin from now on.
  void Limit(absl::Duration time) {
    Lowest().expires_after(absl::ToChronoNanoseconds(time));
  }
  absl::Duration TimeFor(size_t bytes) const {
    return absl::Seconds(static_cast<double>(bytes) /
                         static_cast<double>(limits().slowest));
  }

  // The connection is kept: whatever comes next begins a request.
  void AwaitRequest() {
    request_ = {};
    if (!in_.empty()) {
      Limit(limits().lifetime);
      return ReadHead();
    }
    Limit(limits().idle);
    stream_.async_read_some(
        asio::buffer(scratch_),
        [self = this->shared_from_this()](const Error& error, size_t size) {
          if (error) return self->Abort();
          self->in_.assign(self->scratch_.data(), size);
          self->Limit(self->limits().lifetime);
          self->ReadHead();
        });
  }

  void ReadHead() {
    asio::async_read_until(
        stream_, asio::dynamic_buffer(in_, limits().head_bytes), kEndOfHead,
        [self = this->shared_from_this()](const Error& error, size_t size) {
          if (error == asio::error::not_found) {
            return self->Refuse(
                Refusal(431, "the request's head is too large"));
          }
          if (error) return self->Abort();
          self->TakeHead(size);
        });
  }

  void TakeHead(size_t size) {
    const Response refusal =
        ParseRequest(std::string_view(in_).substr(0, size), kTls, request_);
    in_.erase(0, size);
    if (refusal.status != 200) return Refuse(refusal);
    if (!IsOurHost(request_.host, shared_->own_host) && !IsCertified()) {
      return Refuse(Refusal(403, "that Host is not this server"));
    }
    if (request_.body_bytes > limits().body_bytes) {
      return Refuse(Refusal(413, "the body is too large"));
    }
    if (request_.body_bytes == 0) return Handle();
    if (shared_->bodies >= limits().bodies) {
      return Refuse(Refusal(503, "too much is being sent; try again"));
    }
    ReadBody();
  }

  void ReadBody() {
    ++shared_->bodies;
    reads_body_ = true;
    const auto length = static_cast<size_t>(request_.body_bytes);
    const size_t here = std::min(in_.size(), length);
    request_.body = in_.substr(0, here);
    in_.erase(0, here);
    request_.body.resize(length);
    Limit(limits().lifetime + TimeFor(length));
    asio::async_read(
        stream_, asio::buffer(request_.body.data() + here, length - here),
        [self = this->shared_from_this()](const Error& error, size_t /*size*/) {
          self->EndBody();
          if (error) return self->Abort();
          self->Handle();
        });
  }

  void EndBody() {
    if (std::exchange(reads_body_, false)) --shared_->bodies;
  }

  bool IsCertified() {
    if constexpr (kTls) {
      return IsCertifiedFor(stream_.native_handle(), request_.host);
    }
    return false;
  }

  void Handle() {
    if constexpr (kTls) {
      request_.certificate = PeerCertificate(stream_.native_handle());
    }
    Request given = request_;
    request_.body.clear();
    shared_->handler(std::make_unique<PendingExchange>(
        shared_, this->weak_from_this(), std::move(given)));
  }

  // Nothing that follows on this connection can be believed.
  void Refuse(Response response) {
    last_ = true;
    Write(std::move(response));
  }

  void SayGoodbye() {
    Limit(limits().lifetime);
    if constexpr (kTls) {
      stream_.async_shutdown([self = this->shared_from_this()](
                                 const Error& /*error*/) { self->Drain(); });
    } else {
      Drain();
    }
  }

  // Closing with bytes unread would reset the connection before the client has
  // read its answer.
  void Drain() {
    Error ignored;
    Socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    DrainMore();
  }
  void DrainMore() {
    Lowest().async_read_some(
        asio::buffer(scratch_),
        [self = this->shared_from_this()](const Error& error, size_t size) {
          self->drained_ += size;
          if (error || self->drained_ > kMostDrained) return self->Abort();
          self->DrainMore();
        });
  }

  // Finds out that the client of a stream is gone.
  void ReadNothing() {
    stream_.async_read_some(
        asio::buffer(scratch_),
        [self = this->shared_from_this()](const Error& error, size_t size) {
          self->drained_ += size;
          if (error || self->drained_ > kMostDrained) return self->Abort();
          self->ReadNothing();
        });
  }

  void WriteEvents() {
    Limit(limits().lifetime + TimeFor(out_.size()));
    asio::async_write(
        stream_, asio::buffer(out_),
        [self = this->shared_from_this()](const Error& error, size_t /*size*/) {
          if (error) return self->Abort();
          self->out_.clear();
          self->SendEvents();
        });
  }

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<asio::ssl::context> context_;  // null: plain text
  Layer stream_;
  std::array<char, 2048> scratch_;
  std::string in_;   // read and not used yet
  std::string out_;  // being written
  Request request_;
  bool last_ = false;  // the connection ends after what is being written
  bool reads_body_ = false;
  size_t drained_ = 0;
  // Of a stream.
  std::shared_ptr<EventQueue> queue_;
  std::function<void()> closed_;
};

}  // namespace

std::shared_ptr<Connection> MakeConnection(
    std::shared_ptr<Shared> shared, asio::ip::tcp::socket socket,
    std::shared_ptr<asio::ssl::context> tls) {
  if (tls == nullptr) {
    return std::make_shared<LayeredConnection<Plain>>(
        std::move(shared), nullptr, std::move(socket));
  }
  asio::ssl::context& context = *tls;
  return std::make_shared<LayeredConnection<Tls>>(
      std::move(shared), std::move(tls), std::move(socket), context);
}

}  // namespace tilefarm::http
