//===- Device.h - where arenas live --------------------------------------------===//
#ifndef RUNTIME_DEVICE_DEVICE_H
#define RUNTIME_DEVICE_DEVICE_H

#include <cstddef>
#include <memory>

namespace sft {

/// Memory of one rank's device. Addresses are only passed to kernels of the backend that owns the device.
class Device {
public:
  virtual ~Device() = default;
  /// Aligned to 4096 bytes; throws sft::Error with the sizes when it does not fit. The contents are undefined.
  virtual void *allocate(size_t bytes) = 0;
  virtual void release(void *address, size_t bytes) = 0;
  virtual void copyToDevice(void *device, const void *host, size_t bytes) = 0;
  virtual void copyToHost(void *host, const void *device, size_t bytes) = 0;
  virtual void fill(void *device, unsigned char value, size_t bytes) = 0;
};

/// The machine's own memory.
std::unique_ptr<Device> createHostDevice();

} // namespace sft

#endif // RUNTIME_DEVICE_DEVICE_H
