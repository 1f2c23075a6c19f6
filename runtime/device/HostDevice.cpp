#include "runtime/base/Error.h"
#include "runtime/device/Device.h"

#include <cstring>
#include <sys/mman.h>

namespace sft {

namespace {
// Pages come zeroed and are touched on first use, so an arena costs what a step really writes.
class HostDevice : public Device {
public:
  void *allocate(size_t bytes) override {
    void *address = mmap(nullptr, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED)
      fail("cannot reserve memory for an arena (bytes): ", bytes, "; free memory or compile for fewer --tokens");
    return address;
  }
  void release(void *address, size_t bytes) override { munmap(address, bytes ? bytes : 1); }
  void copyToDevice(void *device, const void *host, size_t bytes) override { std::memcpy(device, host, bytes); }
  void copyToHost(void *host, const void *device, size_t bytes) override { std::memcpy(host, device, bytes); }
  void fill(void *device, unsigned char value, size_t bytes) override { std::memset(device, value, bytes); }
};
} // namespace

std::unique_ptr<Device> createHostDevice() { return std::make_unique<HostDevice>(); }

} // namespace sft
