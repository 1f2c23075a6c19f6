//===- Philox.h - counter-based random bits ------------------------------------===//
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"): a
// bijection of a 128-bit counter under a 64-bit key. Any element of a stream is computed by itself.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_CHECKPOINT_PHILOX_H
#define RUNTIME_CHECKPOINT_PHILOX_H

#include <array>
#include <cstdint>

namespace sft {

inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t(0xD2511F53u) * counter[0];
    uint64_t product1 = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {uint32_t(product1 >> 32) ^ counter[1] ^ key[0], uint32_t(product1),
               uint32_t(product0 >> 32) ^ counter[3] ^ key[1], uint32_t(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

} // namespace sft

#endif // RUNTIME_CHECKPOINT_PHILOX_H
