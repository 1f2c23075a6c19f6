#include "runtime/base/Error.h"

int sft::Error::exitCode() const {
  switch (kind_) {
  case ErrorKind::Usage:
    return 2;
  case ErrorKind::PeerFailed:
    return 4;
  case ErrorKind::BadInput:
  case ErrorKind::Internal:
    break;
  }
  return 1;
}
