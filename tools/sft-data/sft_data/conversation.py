"""Which conversations are accepted.

A record is `{"messages": [{"role": ..., "content": ...}, ...]}`, optionally with `"system": text`, which stands for a
leading system message. The policy: at most one system message, at the front; then user and assistant in turn, user first,
assistant last; every content is a string with something in it. Anything else is an error for that line: nothing is
re-ordered, merged, cut or filled in. A key whose value is null counts as absent, so that files written by columnar tools
(which give every key to every record) mean the same as those without the key.
"""

from __future__ import annotations

import difflib
from collections import Counter
from typing import Any

from .errors import BadLine, shown, type_name

ROLES = ("system", "user", "assistant")
OTHER_NAMES = {
    "human": "user",
    "person": "user",
    "prompter": "user",
    "customer": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "agent": "assistant",
    "developer": "system",
}
# Keys that other formats use for what is asked for here.
OTHER_KEYS = {
    "messages": ("conversations", "conversation", "dialog", "dialogue", "turns", "chat"),
    "content": ("value", "text", "message", "utterance"),
    "role": ("from", "speaker", "author", "sender"),
}
# Passing over these would train on something else than the file says.
UNSUPPORTED_RECORD_KEYS = ("tools", "functions", "documents")
UNSUPPORTED_MESSAGE_KEYS = ("tool_calls", "function_call", "weight", "reasoning_content")

Messages = list[dict[str, str]]


def _keys(value: dict[str, Any]) -> list[str]:
    return [key for key, item in value.items() if item is not None]


def _missing(key: str, value: dict[str, Any], where: str) -> BadLine:
    keys = _keys(value)
    like = next((k for k in OTHER_KEYS[key] if k in keys), None) or next(
        iter(difflib.get_close_matches(key, keys, 1)), None
    )
    hint = f"; rename {shown(like)} to {shown(key)}" if like else f"; give {shown(key)}"
    seen = ", ".join(shown(k, 30) for k in keys[:8]) or "none"
    return BadLine(f"key '{key}' is missing", f"{where}: keys seen: {seen}{hint}", keys=keys)


def _string(value: dict[str, Any], key: str, where: str) -> str:
    item = value.get(key)
    if item is None:
        raise _missing(key, value, where)
    if not isinstance(item, str):
        raise BadLine(f"'{key}' has the wrong type", f"{where}: got {type_name(item)} {shown(item)}; expected string")
    return item


def _unsupported(value: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        item = value.get(key)
        harmless = item is None or item == [] or item == {} or (key == "weight" and item == 1)
        if not harmless:
            raise BadLine(f"'{key}' is not supported", f"{where}: {shown(item)}; leave it out or set it to null")


def read_conversation(record: dict[str, Any], allow_empty_answers: bool, ignored_keys: Counter[str]) -> Messages:
    """The messages of one record, checked; BadLine otherwise. Counts the keys it passes over."""
    raw = record.get("messages")
    if raw is None:
        raise _missing("messages", record, "")
    if not isinstance(raw, list):
        raise BadLine("'messages' has the wrong type", f": got {type_name(raw)} {shown(raw)}; expected list")
    _unsupported(record, UNSUPPORTED_RECORD_KEYS, "")
    ignored: set[str] = set(_keys(record)) - {"messages", "system"}

    messages: Messages = []
    system = record.get("system")
    if system is not None:
        if not isinstance(system, str):
            raise BadLine("'system' has the wrong type", f": got {type_name(system)} {shown(system)}; expected string")
        messages.append({"role": "system", "content": system})

    # Indices in messages are those of the list in the file, from 0.
    for i, item in enumerate(raw):
        if not isinstance(item, dict):
            raise BadLine(
                "message has the wrong type", f" (message {i}): got {type_name(item)} {shown(item)}; expected object"
            )
        role = _string(item, "role", f" (message {i})")
        where = f" (message {i}, role {shown(role, 30)})"
        if role not in ROLES:
            raise BadLine("unknown role", f"{where}: {shown(role, 30)}; {_nearest_role(role)}")
        content = _string(item, "content", where)
        _unsupported(item, UNSUPPORTED_MESSAGE_KEYS, where)
        ignored |= {f"messages[].{key}" for key in _keys(item)} - {"messages[].role", "messages[].content"}
        if not content.strip() and not (role == "assistant" and allow_empty_answers):
            option = " (--allow-empty-answers trains the end of turn alone)" if role == "assistant" else ""
            raise BadLine(
                "empty turn", f"{where}: {shown(content)}; write its text or leave the conversation out{option}"
            )
        _check_order(role, messages, where, came_from_key=system is not None and i == 0)
        messages.append({"role": role, "content": content})

    if not messages:
        raise BadLine("no messages", ": 'messages' is an empty list; user and assistant in turn")
    last, where = messages[-1]["role"], f" (message {len(raw) - 1}, role {shown(messages[-1]['role'])})"
    if last == "system":
        raise BadLine(
            "only a system message", f"{where if raw else ''}: nothing to train; user and assistant in turn after it"
        )
    if last == "user":
        raise BadLine("conversation ends with user", f"{where}: no answer to train; an assistant message last")
    ignored_keys.update(ignored)
    return messages


def _check_order(role: str, before: Messages, where: str, came_from_key: bool) -> None:
    previous = before[-1]["role"] if before else None
    if role == "system":
        if previous is not None:
            given = "there is a key 'system' too" if came_from_key else f"it comes after {shown(previous)}"
            raise BadLine("system message is not the first", f"{where}: {given}; one system message at the front")
    elif role == "assistant" and previous in (None, "system"):
        raise BadLine("conversation starts with assistant", f"{where}: no user message before it; a user message first")
    elif role == previous:
        raise BadLine(
            f"two {role} messages in a row", f"{where}: the one before has the same role; user and assistant in turn"
        )


def _nearest_role(role: str) -> str:
    name = role.strip().lower()
    nearest = (
        name if name in ROLES else OTHER_NAMES.get(name) or next(iter(difflib.get_close_matches(name, ROLES, 1)), None)
    )
    return f"use '{nearest}'" if nearest else f"one of {', '.join(ROLES)}"
