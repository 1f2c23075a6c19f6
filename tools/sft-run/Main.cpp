#include "runtime/base/Error.h"
#include "tools/sft-run/Options.h"
#include "tools/sft-run/Training.h"

#include <cstdio>
#include <exception>
#include <regex>

namespace {

/// Errors with a place in a file stand as they are: `FILE:LINE:COL: error: WHAT`.
void printError(const std::string &message) {
  static const std::regex placed("^[^\n]*:[0-9]+:[0-9]+: error: ");
  bool hasPlace = std::regex_search(message, placed, std::regex_constants::match_continuous);
  std::fprintf(stderr, "%s%s\n", hasPlace ? "" : "sft-run: error: ", message.c_str());
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
