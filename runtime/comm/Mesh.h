//===- Mesh.h - ranks and their places on the mesh axes ------------------------===//
#ifndef RUNTIME_COMM_MESH_H
#define RUNTIME_COMM_MESH_H

#include <string>
#include <utility>
#include <vector>

namespace sft {

/// Named axes in rank order, fastest first (tp, cp, dp, pp).
class Mesh {
public:
  explicit Mesh(std::vector<std::pair<std::string, int>> axes) : axes_(std::move(axes)) {}

  const std::vector<std::pair<std::string, int>> &axes() const { return axes_; }
  int ranks() const;
  /// Size of one axis; 1 for a name that the mesh does not have.
  int size(const std::string &axis) const;
  /// Product of the sizes.
  int size(const std::vector<std::string> &axes) const;
  /// Index of a rank inside its group over `axes`, in mesh order (fastest axis first), whatever the order of the list.
  int index(int rank, const std::vector<std::string> &axes) const;
  /// All ranks of the group over `axes` that holds `rank`, by index.
  std::vector<int> group(int rank, const std::vector<std::string> &axes) const;

private:
  std::vector<std::pair<std::string, int>> axes_;
};

} // namespace sft

#endif // RUNTIME_COMM_MESH_H
