// How the farm sends messages to one connected worker.
#ifndef TILEFARM_SERVER_FARM_WORKER_LINK_H_
#define TILEFARM_SERVER_FARM_WORKER_LINK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/farm/lease.h"

namespace tilefarm::farm {

// Called with the farm's lock held: the methods only enqueue, never block, and
// never call the farm.
class WorkerLink {
 public:
  virtual ~WorkerLink() = default;
  virtual void SendLease(const Lease& lease) = 0;
  virtual void SendCancel(const std::string& lease_id) = 0;
  // The link may keep the acknowledgement until it sends another message.
  virtual void SendAck(const std::string& lease_id, bool superseded) = 0;
  // Sends the acknowledgements that have been kept for `waited` or longer.
  virtual void FlushAcks(absl::Duration waited) = 0;
  // Whether the worker has so many unread messages that it must not get leases.
  virtual bool Clogged() { return false; }
  // Ends the stream; nothing is sent after.
  virtual void Close(const absl::Status& why) = 0;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_WORKER_LINK_H_
