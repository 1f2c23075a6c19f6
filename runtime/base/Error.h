//===- Error.h - the one way the runtime reports a failure ------------------===//
//
// Runtime code throws sft::Error; programs catch it once, in main, and print `PROGRAM: error: MESSAGE`. A message follows
// the form `WHAT (WHERE): VALUE; NEAREST VALID CHOICE`.
//
//===----------------------------------------------------------------------===//
#ifndef RUNTIME_BASE_ERROR_H
#define RUNTIME_BASE_ERROR_H

#include <sstream>
#include <stdexcept>
#include <string>

namespace sft {

/// What kind of failure it was; decides the exit code of a program.
enum class ErrorKind {
  BadInput,   ///< the user's file, option or value is wrong (exit code 1)
  Usage,      ///< the command line is wrong (exit code 2)
  PeerFailed, ///< another rank failed first; that rank's message is the one to show (exit code 4)
  Internal    ///< a defect of this program (exit code 1)
};

/// A failure with a message for a person.
class Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string &message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exitCode() const;

private:
  ErrorKind kind_;
};

/// Concatenates everything that can be streamed.
template <typename... Args> std::string concat(const Args &...args) {
  std::ostringstream os;
  (os << ... << args);
  return os.str();
}

/// Throws a bad-input error whose message is the concatenation of the arguments.
template <typename... Args> [[noreturn]] void fail(const Args &...args) {
  throw Error(ErrorKind::BadInput, concat(args...));
}

/// Throws an internal error: something this program promised itself does not hold.
template <typename... Args> [[noreturn]] void failInternal(const Args &...args) {
  throw Error(ErrorKind::Internal, concat("internal error: ", args...));
}

} // namespace sft

#endif // RUNTIME_BASE_ERROR_H
