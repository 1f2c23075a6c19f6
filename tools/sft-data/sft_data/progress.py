"""One line on a terminal that tells how far long work has come."""

from __future__ import annotations

import sys
import time


class Progress:
    def __init__(self, total_bytes: int, quiet: bool) -> None:
        self.total = max(total_bytes, 1)
        self.on = not quiet and sys.stderr.isatty()
        self.next = time.monotonic() + 0.5  # short work shows nothing
        self.shown = False

    def update(self, done_bytes: int, samples: int) -> None:
        if self.on and time.monotonic() >= self.next:
            self.next = time.monotonic() + 0.2
            self.shown = True
            percent = min(100 * done_bytes // self.total, 100)
            sys.stderr.write(f"\r\x1b[Ksft-data: {percent:3d} %, {samples:,} samples")
            sys.stderr.flush()

    def clear(self) -> None:
        """Call before any other line is printed, and at the end."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.shown = False
