#include "runtime/comm/Mesh.h"

#include <algorithm>

namespace sft {

namespace {
bool contains(const std::vector<std::string> &axes, const std::string &axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}
} // namespace

int Mesh::ranks() const {
  int ranks = 1;
  for (const auto &[name, size] : axes_)
    ranks *= size;
  return ranks;
}

int Mesh::size(const std::string &axis) const {
  for (const auto &[name, size] : axes_)
    if (name == axis)
      return size;
  return 1;
}

int Mesh::size(const std::vector<std::string> &axes) const {
  int product = 1;
  for (const auto &[name, size] : axes_)
    if (contains(axes, name))
      product *= size;
  return product;
}

int Mesh::index(int rank, const std::vector<std::string> &axes) const {
  int index = 0, stride = 1;
  for (const auto &[name, size] : axes_) {
    if (contains(axes, name)) {
      index += rank % size * stride;
      stride *= size;
    }
    rank /= size;
  }
  return index;
}

std::vector<int> Mesh::group(int rank, const std::vector<std::string> &axes) const {
  std::vector<int> members = {0};
  int stride = 1;
  for (const auto &[name, size] : axes_) {
    bool inside = contains(axes, name);
    std::vector<int> extended;
    for (int c = 0; c < (inside ? size : 1); ++c)
      for (int member : members)
        extended.push_back(member + (inside ? c : rank % size) * stride);
    members = std::move(extended);
    rank /= size;
    stride *= size;
  }
  return members;
}

} // namespace sft
