"""Which tokens are trained: positions found by rendering prefixes of the conversation, never by searching text.

For each assistant message i the trained text begins where `messages[:i]` with the generation prompt ends (that is what the
model will be given when it is used) and ends where `messages[:i + 1]` ends. The whole conversation is tokenized once, and
the tokenizer's character offsets turn those places into tokens. A token is trained when all its characters lie inside.

What a template puts after the end-of-turn token (often a line feed) is not trained: generation has stopped by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from .conversation import Messages
from .errors import BadLine, shown
from .template import ChatTemplate


@dataclass
class Rendered:
    text: str
    spans: list[tuple[int, int]]  # in characters, one for each assistant message


def render_with_spans(template: ChatTemplate, messages: Messages) -> Rendered:
    text = template.render(messages, add_generation_prompt=False)
    spans: list[tuple[int, int]] = []
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = template.render(messages[:i], add_generation_prompt=True)
        after = text if i + 1 == len(messages) else template.render(messages[: i + 1], add_generation_prompt=False)
        _require_prefix(text, before, f"up to message {i} with the generation prompt", template)
        _require_prefix(text, after, f"up to and with message {i}", template)
        if len(after) < len(before):
            raise BadLine(
                "chat template drops the answer",
                f" (message {i}, {template.path}): no text for it; a template that renders it",
            )
        spans.append((len(before), len(after)))
    return Rendered(text, spans)


def _require_prefix(text: str, prefix: str, what: str, template: ChatTemplate) -> None:
    if text.startswith(prefix):
        return
    place = next((i for i, (a, b) in enumerate(zip(text, prefix)) if a != b), min(len(text), len(prefix)))
    raise BadLine(
        "chat template is not prefix-stable",
        f" ({template.path}): the conversation {what} renders differently from the whole, at character {place} "
        f"{shown(prefix[place : place + 20])} instead of {shown(text[place : place + 20])}; a template that renders a message "
        "the same way whatever follows",
    )


class ControlTokens:
    """Special tokens that the template itself writes, such as the end of a turn, and the tokenizer's other special tokens."""

    def __init__(self, tokenizer: Any, template: ChatTemplate) -> None:
        special = {i: token.content for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        self.ids: set[int] = {i for i, text in special.items() if text in template.variables.values()}
        plain = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 2
        for messages in (plain, [{"role": "system", "content": "c"}, *plain]):
            try:
                text = template.render(messages, add_generation_prompt=False)
            except BadLine:  # some templates know no system message
                continue
            self.ids |= set(tokenizer.encode(text, add_special_tokens=False).ids) & special.keys()
        self.control = sorted(special[i] for i in self.ids)
        self.other = sorted(text for i, text in special.items() if i not in self.ids)

    def refuse_in(self, messages: Messages) -> None:
        """A control token written in a message would end or begin a turn in the middle of a text."""
        for i, message in enumerate(messages):
            for text in self.control:
                if text in message["content"]:
                    raise BadLine(
                        "control token inside a message",
                        f" (message {i}, role {shown(message['role'])}): {shown(text)}; text without the chat template's own tokens",
                    )

    def others_in(self, messages: Messages) -> set[str]:
        return {text for text in self.other if any(text in message["content"] for message in messages)}


@dataclass
class Sample:
    input_ids: list[int]
    loss_mask: list[int]
    straddling: int  # tokens that begin before a span and end inside it; not trained


def to_sample(
    ids: Sequence[int], offsets: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]], control_ids: set[int]
) -> Sample:
    mask = [0] * len(ids)
    straddling = 0
    i = 0
    for begin, end in spans:
        while i < len(ids) and offsets[i][1] <= begin:
            i += 1
        first = i
        while i < len(ids) and offsets[i][0] < end:
            i += 1
        inside = [t for t in range(first, i) if begin <= offsets[t][0] and offsets[t][1] <= end]
        straddling += (i - first) - len(inside)
        # Messages hold no control token, so the last one in the span is the end of the turn; what follows is the template's.
        last_control = max((t for t in inside if ids[t] in control_ids), default=None)
        for t in inside:
            if t > 0 and (last_control is None or t <= last_control):  # nothing predicts a document's first token
                mask[t] = 1
    return Sample(list(ids), mask, straddling)
