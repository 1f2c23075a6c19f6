#include "runtime/base/Error.h"
#include "tools/sft-run/Options.h"
#include "tools/sft-run/Training.h"

#include <cstdio>
#include <exception>
#include <string_view>

namespace {

/// Takes "NUMBER:" off the end of `text`.
bool takeNumber(std::string_view &text) {
  size_t digits = text.find_last_not_of("0123456789");
  size_t begin = digits == std::string_view::npos ? 0 : digits + 1;
  if (begin == text.size() || begin == 0 || text[begin - 1] != ':')
    return false;
  text.remove_suffix(text.size() - begin + 1);
  return true;
}

/// Whether the first line reads `FILE:LINE:COL: error: WHAT`.
bool startsWithPlace(std::string_view message) {
  std::string_view place = message.substr(0, message.find('\n'));
  place = place.substr(0, place.find(": error: "));
  return place.size() < message.size() && takeNumber(place) && takeNumber(place) && !place.empty();
}

/// Errors with a place in a file stand as they are: `FILE:LINE:COL: error: WHAT`.
void printError(const std::string &message) {
  std::fprintf(stderr, "%s%s\n", startsWithPlace(message) ? "" : "sft-run: error: ",
               message.c_str());
}

} // namespace

int main(int argc, char **argv) {
  try {
    sft::RunOptions options;
    if (std::optional<int> code = sft::parseOptions(argc, argv, options))
      return *code;
    return sft::runTraining(options);
  } catch (const sft::Error &error) {
    printError(error.what());
    return error.exitCode();
  } catch (const std::bad_alloc &) {
    printError("out of host memory; free memory or compile for fewer --tokens");
  } catch (const std::exception &error) {
    printError(error.what());
  }
  return 1;
}
