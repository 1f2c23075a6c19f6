#!/usr/bin/env python3
"""Writes the demo's conversations: the BYU Chit-Chat dataset (MIT), real conversations between two people.

They come inside the PyPI package `chitchat-dataset`; nothing else is fetched. Written to the output folder, one
conversation a line, `{"messages": [{"role": "user" | "assistant", "content": ...}, ...]}`:

    train.jsonl   for training
    val.jsonl     held out

Who speaks first becomes `user`, the other `assistant`; the utterances of one turn are joined by line feeds. A conversation
belongs to val.jsonl when a hash of its text says so: the split depends on nothing else, and no text is in both files.
docs/decisions/2026-12-01-conversations.md tells why this set.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = "chitchat-dataset"
NAME = "BYU Chit-Chat dataset (Myers, Etchart and Fulda 2020, Brigham Young University)"
LICENSE = "MIT"
DEFAULT_OUTPUT = ROOT / "build" / "data"

# Some people gave an address or a number to a stranger; a model should not learn it, and links lead nowhere.
PRIVATE = re.compile(r"\S+@\S+\.\w|\b\d{3}[-. )]+\d{3}[-. ]\d{4}\b|\b\d{10}\b|https?://", re.IGNORECASE)


class Failure(Exception):
    """A problem to tell the user in one line."""


def load_dataset() -> dict[str, Any]:
    # find_spec, not import: all that is wanted is the file.
    spec = importlib.util.find_spec("chitchat_dataset")
    if spec is None or not spec.submodule_search_locations:
        raise Failure(
            f"package carrying the conversations is missing (PyPI): {PACKAGE}; "
            "run tools/scripts/python-env.sh and use build/venv/bin/python"
        )
    path = Path(spec.submodule_search_locations[0]) / "dataset.json"
    return json.loads(path.read_text(encoding="utf-8"))


def to_messages(conversation: dict[str, Any]) -> tuple[list[dict[str, str]], str | None]:
    """The messages of one conversation, or ([], why it is not used)."""
    turns = conversation["messages"]
    if len(turns) < 2:
        return [], "nobody answered"
    senders = [{utterance["sender"] for utterance in turn} for turn in turns]
    if any(len(sender) != 1 for sender in senders) or len(set().union(*senders)) != 2:
        return [], "not between two people"
    if any(before == after for before, after in zip(senders, senders[1:])):
        return [], "turns do not alternate"

    contents = ["\n".join(text for utterance in turn if (text := utterance["text"].strip())) for turn in turns]
    if not all(contents):
        return [], "empty turn"
    if any(PRIVATE.search(content) for content in contents):
        return [], "e-mail address, telephone number or link"
    if len(contents) % 2 == 1:  # the last turn has no answer: nothing to learn from it
        contents.pop()
    return [{"role": ("user", "assistant")[i % 2], "content": content} for i, content in enumerate(contents)], None


def is_held_out(text: str, percent: float) -> bool:
    """True for about `percent` of all texts: always the same ones, and a larger percentage only adds to them."""
    value = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")
    return value < percent / 100 * 2**64


def write_lines(path: Path, lines: list[str]) -> None:
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        temporary.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="get_conversations.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=DEFAULT_OUTPUT, metavar="DIR", help="folder to write (default: build/data)"
    )
    parser.add_argument(
        "--held-out",
        type=float,
        default=5.0,
        metavar="PERCENT",
        help="share of the conversations in val.jsonl (default: 5)",
    )
    arguments = parser.parse_args()
    if not 0 < arguments.held_out < 100:
        parser.error(f"--held-out: {arguments.held_out}; a percentage between 0 and 100")
    try:
        dataset = load_dataset()
    except Failure as failure:
        print(f"get_conversations: error: {failure}", file=sys.stderr)
        return 1

    dropped: Counter[str] = Counter()
    turns: Counter[str] = Counter()
    files: dict[str, list[str]] = {"train.jsonl": [], "val.jsonl": []}
    seen: set[str] = set()
    for conversation in dataset.values():
        messages, reason = to_messages(conversation)
        if reason:
            dropped[reason] += 1
            continue
        line = json.dumps({"messages": messages}, ensure_ascii=False)
        if line in seen:
            dropped["same text as an earlier one"] += 1
            continue
        seen.add(line)
        file = "val.jsonl" if is_held_out(line, arguments.held_out) else "train.jsonl"
        files[file].append(line)
        turns[file] += len(messages)

    output = arguments.output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    print(f"{NAME}, licence {LICENSE}, from PyPI's {PACKAGE}")
    for file, lines in files.items():
        write_lines(output / file, lines)
        print(f"  {file}: {len(lines)} conversations, {turns[file]} turns -> {output / file}")
    print(f"  not used: {sum(dropped.values())} of {len(dataset)}")
    for reason, count in dropped.most_common():
        print(f"    {count:5d}  {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
