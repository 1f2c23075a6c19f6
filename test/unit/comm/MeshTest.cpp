#include "runtime/comm/Mesh.h"

#include <gtest/gtest.h>

#include <set>

using namespace sft;

namespace {

using Axes = std::vector<std::string>;

TEST(Mesh, NumbersRanksFastestAxisFirst) {
  Mesh mesh({{"tp", 2}, {"cp", 3}, {"dp", 2}});
  EXPECT_EQ(mesh.ranks(), 12);
  EXPECT_EQ(mesh.size("cp"), 3);
  EXPECT_EQ(mesh.size("pp"), 1);
  EXPECT_EQ(mesh.size(Axes{"dp", "tp"}), 4);
  EXPECT_EQ(mesh.size(Axes{}), 1);
  // rank 9 = tp 1 + cp 1 * 2 + dp 1 * 6
  EXPECT_EQ(mesh.index(9, {"tp"}), 1);
  EXPECT_EQ(mesh.index(9, {"cp"}), 1);
  EXPECT_EQ(mesh.index(9, {"dp"}), 1);
  EXPECT_EQ(mesh.index(9, {"pp"}), 0);
}

TEST(Mesh, IndexDoesNotDependOnTheOrderOfTheList) {
  Mesh mesh({{"tp", 2}, {"cp", 3}, {"dp", 2}});
  EXPECT_EQ(mesh.index(9, {"cp", "dp"}), 1 + 1 * 3);
  EXPECT_EQ(mesh.index(9, {"dp", "cp"}), 1 + 1 * 3);
  EXPECT_EQ(mesh.index(9, {}), 0);
}

TEST(Mesh, GroupsPartitionTheRanksAndKeepTheirOrder) {
  Mesh mesh({{"tp", 2}, {"cp", 3}, {"dp", 2}});
  for (const Axes &axes :
       {Axes{}, Axes{"tp"}, Axes{"cp"}, Axes{"tp", "dp"}, Axes{"tp", "cp", "dp"}}) {
    std::set<std::vector<int>> groups;
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      std::vector<int> group = mesh.group(rank, axes);
      ASSERT_EQ(int(group.size()), mesh.size(axes));
      EXPECT_EQ(group[size_t(mesh.index(rank, axes))], rank);
      groups.insert(group);
    }
    EXPECT_EQ(int(groups.size()), mesh.ranks() / mesh.size(axes));
  }
  EXPECT_EQ(mesh.group(9, {"cp"}), (std::vector<int>{7, 9, 11}));
}

} // namespace
