"""What a problem looks like to the user."""

from __future__ import annotations

from dataclasses import dataclass, field


class Failure(Exception):
    """Ends the program with exit code 1. The text reads `WHAT (WHERE): VALUE; NEAREST VALID CHOICE`."""


class Usage(Exception):
    """Wrong use of the command line: exit code 2."""


@dataclass
class BadLine(Exception):
    """One unusable line. `reason` is the same for all lines with the same fault, so that they can be counted."""

    reason: str
    detail: str = ""  # values and the nearest valid choice
    column: int = 1  # in characters, from 1
    keys: list[str] = field(default_factory=list)  # keys seen where one was missing

    @property
    def text(self) -> str:
        return f"{self.reason}{self.detail}"


def at(path: str, line: int, column: int, severity: str, text: str) -> str:
    """The form of every message with a place in a file; editors and terminals know how to jump there."""
    return f"{path}:{line}:{column}: {severity}: {text}"


def shown(value: object, limit: int = 60) -> str:
    """A value inside a message: quoted, on one line, cut when long. JSON's names, since the user wrote JSON."""
    if value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    else:
        text = ascii(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def type_name(value: object) -> str:
    """The JSON name of a value's type."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", dict: "object"}
    return names[type(value)]
