//===- MappedFile.h - a file as read-only memory ------------------------------===//
#ifndef RUNTIME_BASE_MAPPEDFILE_H
#define RUNTIME_BASE_MAPPEDFILE_H

#include <cstddef>
#include <string>

namespace sft {

/// A whole regular file, mapped read-only for as long as the object lives. An empty file is valid
/// and has size 0. Throws when the file cannot be opened or is not a regular file, with the path
/// and the system's reason.
class MappedFile {
public:
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const char *data() const { return data_; }
  size_t size() const { return size_; }

private:
  const char *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace sft

#endif // RUNTIME_BASE_MAPPEDFILE_H
