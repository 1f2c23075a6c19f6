#include "runtime/checkpoint/DurableFile.h"
#include "runtime/base/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace sft {

namespace {

std::string folderOf(const std::string &path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// A file that is closed, and removed unless it was kept.
class TemporaryFile {
public:
  explicit TemporaryFile(std::string path)
      : path_(std::move(path)),
        descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  ~TemporaryFile() {
    if (descriptor_ < 0)
      return;
    close(descriptor_);
    if (!kept_)
      unlink(path_.c_str());
  }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      constexpr size_t most = size_t(1) << 30; // one call writes less than 2 GiB
      ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), most));
      if (written < 0 && errno != EINTR)
        return false;
      bytes.remove_prefix(written < 0 ? 0 : size_t(written));
    }
    return true;
  }
  bool renameTo(const std::string &path) {
    kept_ = fsync(descriptor_) == 0 && rename(path_.c_str(), path.c_str()) == 0;
    return kept_;
  }
  bool isOpen() const { return descriptor_ >= 0; }

private:
  std::string path_;
  int descriptor_;
  bool kept_ = false;
};

} // namespace

void writeDurably(const std::string &path, const std::vector<std::string_view> &pieces) {
  size_t needed = 0;
  for (std::string_view piece : pieces)
    needed += piece.size();
  auto freeBytes = [&] {
    std::error_code unknown;
    return std::filesystem::space(folderOf(path), unknown).available;
  };
  auto stop = [&](int reason) {
    fail("cannot write file (", path, "): ", std::strerror(reason), ", ", needed, " bytes needed, ",
         freeBytes(), " free");
  };
  TemporaryFile file(path + ".tmp");
  if (!file.isOpen())
    stop(errno);
  if (needed > freeBytes())
    stop(ENOSPC);
  for (std::string_view piece : pieces)
    if (!file.write(piece))
      stop(errno);
  if (!file.renameTo(path))
    stop(errno);
  syncFolder(folderOf(path));
}

void syncFolder(const std::string &folder) {
  int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool done = descriptor >= 0 && fsync(descriptor) == 0;
  int reason = errno;
  if (descriptor >= 0)
    close(descriptor);
  // Some file systems cannot sync a folder; there is nothing to do about it.
  if (!done && reason != EINVAL && reason != ENOTSUP)
    fail("cannot sync folder (", folder, "): ", std::strerror(reason));
}

} // namespace sft
