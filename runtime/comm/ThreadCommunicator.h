//===- ThreadCommunicator.h - ranks as threads of one process -------------------===//
#ifndef RUNTIME_COMM_THREADCOMMUNICATOR_H
#define RUNTIME_COMM_THREADCOMMUNICATOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Mesh.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sft {

/// All ranks of a mesh inside this process. Ranks read each other's buffers directly, so the memory
/// of every rank must outlive the last call of every rank, also after a failure.
class ThreadWorld {
public:
  /// `timeout` in seconds bounds every wait for a peer; 0 waits for ever.
  explicit ThreadWorld(Mesh mesh, double timeout = 0);
  ~ThreadWorld();
  ThreadWorld(const ThreadWorld &) = delete;
  ThreadWorld &operator=(const ThreadWorld &) = delete;

  const Mesh &mesh() const { return mesh_; }

  /// The handle of `rank` on its group over `axes`. Must not outlive the world; each (rank, axes)
  /// is used by one thread at a time, and all handles of one (rank, axes) count as one.
  std::unique_ptr<Communicator> create(int rank, const std::vector<std::string> &axes);

  /// Reports that `rank` failed: every waiting and every later call of any rank throws
  /// sft::Error(PeerFailed) with the message of the first failure. Later reports are dropped.
  void abort(int rank, const std::string &message);

  bool failed() const;
  /// The first failure: "MESSAGE" in a world of one rank, otherwise "rank R: MESSAGE". Empty while
  /// nothing failed.
  std::string failure() const;

  struct Group; ///< what the ranks of one group share

private:
  void abortLocked(int rank, const std::string &message);

  Mesh mesh_;
  double timeout_;
  mutable std::mutex mutex_; ///< guards everything below and the contents of all groups
  std::map<std::vector<int>, std::unique_ptr<Group>> groups_; ///< by members
  bool failed_ = false;
  std::string failure_;

  friend class ThreadCommunicator;
};

} // namespace sft

#endif // RUNTIME_COMM_THREADCOMMUNICATOR_H
