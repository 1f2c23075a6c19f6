//===- TestFiles.h - temporary files and expected errors for unit tests --------===//
#ifndef TEST_UNIT_TESTFILES_H
#define TEST_UNIT_TESTFILES_H

#include "runtime/base/Error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>

namespace sft::test {

/// A folder that is removed with everything in it at the end of the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sft-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(std::string_view name = "") const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }
  /// Writes a file and returns its path.
  std::string write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
    return path(name);
  }
  std::string read(std::string_view name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

private:
  std::filesystem::path path_;
};

/// Expects the action to throw sft::Error with all the parts in its message.
template <typename Action>
void expectError(Action &&action, std::initializer_list<std::string> parts) {
  try {
    action();
  } catch (const Error &error) {
    std::string message = error.what();
    for (const std::string &part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in: " << message;
    return;
  }
  ADD_FAILURE() << "no error; expected one with \"" << (parts.size() ? *parts.begin() : "") << "\"";
}

} // namespace sft::test

#endif // TEST_UNIT_TESTFILES_H
