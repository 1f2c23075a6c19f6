"""Strict reading of JSON Lines.

Rules:
- UTF-8. One byte order mark at the very start of a file is skipped; anywhere else it is an error, as is UTF-16 or UTF-32.
- Only LF ends a line. U+2028, U+2029, U+0085, VT and FF inside a string are text like any other.
- A line holding only JSON white space carries no record and is passed over.
- Every other line is one JSON object without repeated keys, NaN, Infinity or lone surrogate escapes (half a character
  cannot be written as UTF-8, and replacing it would change the text silently).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Iterator

from .errors import BadLine, Failure, shown, type_name

BOM = b"\xef\xbb\xbf"
# The four-byte marks come first: the little-endian one begins with the two-byte mark.
OTHER_ENCODINGS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
SURROGATE = re.compile("[\ud800-\udfff]")


class _Duplicate(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _Duplicate(next(key for key in keys if keys.count(key) > 1))
    return value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def read_lines(path: str) -> Iterator[tuple[int, int, bytes]]:
    """Yields (line number from 1, byte offset of the line, line without its LF), blank lines left out."""
    offset = 0
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):  # a binary file splits at LF and nothing else
                start = offset
                offset += len(line)
                if number == 1:
                    for mark, encoding in OTHER_ENCODINGS:
                        if line.startswith(mark):
                            raise Failure(
                                f"file is not UTF-8 ({path}, byte offset 0): {encoding} byte order mark; convert it to UTF-8"
                            )
                    if line.startswith(BOM):
                        line = line[len(BOM) :]
                        start += len(BOM)
                if b"\x00" in line:
                    where = start + line.index(b"\x00")
                    raise Failure(
                        f"file is not UTF-8 text ({path}, line {number}, byte offset {where}): NUL byte, as in UTF-16 or UTF-32 or a "
                        "damaged file; convert it to UTF-8 (the character is written \\u0000)"
                    )
                line = line.removesuffix(b"\n")
                if line.strip(b" \t\r"):
                    yield number, start, line
    except OSError as error:
        raise Failure(f"cannot read file ({path}): {error.strerror}; name a readable JSONL file") from None


def parse_line(line: bytes, offset: int) -> dict[str, Any]:
    """One record, or BadLine. `offset` is the line's place in the file, for messages about encoding."""
    if BOM in line:
        place = line.index(BOM)
        raise BadLine(
            "byte order mark inside the file",
            f" (byte offset {offset + place}): U+FEFF; only one at the very start is skipped, write \\ufeff for the character",
            column=len(line[:place].decode("utf-8", "replace")) + 1,
        )
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadLine(
            "invalid UTF-8",
            f" (byte offset {offset + error.start}): byte 0x{line[error.start]:02x}; convert the file to UTF-8",
            column=len(line[: error.start].decode("utf-8", "replace")) + 1,
        ) from None

    stripped = text.strip(" \t\r")
    indent = len(text) - len(text.lstrip(" \t\r"))
    try:
        value, end = _decoder.raw_decode(stripped)
    except _Duplicate as error:
        raise BadLine("repeated key", f": {shown(str(error))}; each key once in an object") from None
    except json.JSONDecodeError as error:
        message = error.msg[0].lower() + error.msg[1:].removesuffix(" starting at")
        reason, detail = "malformed JSON", f": {message}"
        column = error.pos + indent + 1
        # Ending too early is the commonest fault (a copy or a download cut short), and Python's words hide it.
        if error.pos >= len(stripped) or error.msg.startswith("Unterminated string"):
            reason, detail = "line is cut", f": the JSON ends too early, {message}"
            column = len(text) + 1
        raise BadLine(reason, detail + "; one whole JSON object a line", column=column) from None
    except RecursionError:
        raise BadLine("JSON nested too deeply", "; a conversation has three levels") from None
    except ValueError as error:  # NaN, Infinity, integers of thousands of digits
        raise BadLine("malformed JSON", f": {error}; plain JSON numbers") from None
    if end != len(stripped):
        raise BadLine(
            "more than one JSON value on a line",
            f": {shown(stripped[end:].strip(), 30)}; one object a line",
            column=end + indent + 1,
        )
    if not isinstance(value, dict):
        raise BadLine("line is not an object", f": {type_name(value)}; one JSON object a line", column=indent + 1)
    if "\\u" in text:  # the only way to a surrogate, since the bytes were valid UTF-8
        _refuse_surrogates(value, "")
    return value


def _refuse_surrogates(value: Any, where: str) -> None:
    """Names the place by its keys and indices, such as messages[1].content."""
    if isinstance(value, str):
        found = SURROGATE.search(value)
        if found:
            raise BadLine(
                "lone surrogate escape", f" ({where}): \\u{ord(found.group()):04x}; a pair of them, or \\ufffd"
            )
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _refuse_surrogates(item, f"{where}[{i}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_surrogates(key, f"a key of {where}" if where else "a key")
            _refuse_surrogates(item, f"{where}.{key}" if where else key)


def file_size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError as error:
        raise Failure(f"cannot read file ({path}): {error.strerror}; name a readable JSONL file") from None
