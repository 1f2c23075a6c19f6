#include "runtime/base/MappedFile.h"
#include "runtime/base/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sft {

MappedFile::MappedFile(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail("cannot open file (", path, "): ", std::strerror(errno), "; name a file that can be read");
  struct stat status;
  bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  size_ = regular ? size_t(status.st_size) : 0;
  void *mapping = size_ ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0) : nullptr;
  int reason = errno;
  close(descriptor);
  if (!regular)
    fail("not a regular file (", path, "); name a file, not a folder or device");
  if (mapping == MAP_FAILED)
    fail("cannot map file (", path, "): ", std::strerror(reason));
  data_ = static_cast<const char *>(mapping);
}

MappedFile::~MappedFile() {
  if (data_)
    munmap(const_cast<char *>(data_), size_);
}

} // namespace sft
