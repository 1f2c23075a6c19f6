"""The prepared format, and the commands that read it: `show` and `check`.

A sample is `{"input_ids": [int], "loss_mask": [0 | 1 or weight]}`, or with `"labels": [int]` (-100: not trained) instead of
the mask; `"position_ids"` may be given. Entry i of mask or labels is about token i as a target.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from typing import Any

from .errors import BadLine, Failure, at, shown, type_name
from .jsonl import file_size, parse_line, read_lines
from .progress import Progress
from .template import load_tokenizer

IGNORED_LABEL = -100
LARGEST_ID = 2**31 - 1
PROBLEMS_SHOWN = 10


@dataclass
class Prepared:
    input_ids: list[int]
    weights: list[float]  # as written; the first one never counts

    @property
    def trained(self) -> int:
        return sum(1 for weight in self.weights[1:] if weight)


def _list(record: dict[str, Any], key: str, tokens: int | None) -> list[Any]:
    value = record[key]
    if not isinstance(value, list):
        raise BadLine(f"'{key}' has the wrong type", f": got {type_name(value)} {shown(value)}; expected list")
    if tokens is not None and len(value) != tokens:
        raise BadLine(f"'{key}' has another length than 'input_ids'", f": {len(value)}; {tokens}")
    return value


def _require_int(value: Any, key: str, position: int) -> None:
    if type(value) is not int:  # bool is an int in Python, not in JSON
        raise BadLine(
            f"'{key}' holds the wrong type",
            f" (position {position}): got {type_name(value)} {shown(value)}; expected integer",
        )


def read_sample(record: dict[str, Any], vocab_size: int | None) -> Prepared:
    """One prepared sample, fully checked; BadLine otherwise."""
    record = {key: value for key, value in record.items() if value is not None}
    keys = ", ".join(shown(key, 30) for key in list(record)[:8]) or "none"
    if "input_ids" not in record:
        hint = "conversations go through `sft-data prepare` first" if "messages" in record else "give 'input_ids'"
        raise BadLine("key 'input_ids' is missing", f": keys seen: {keys}; {hint}")
    ids = _list(record, "input_ids", None)
    if not ids:
        raise BadLine("'input_ids' is empty", ": 0 tokens; at least 2, since the first is never a target")
    rows = LARGEST_ID + 1 if vocab_size is None else vocab_size
    for i, token in enumerate(ids):
        _require_int(token, "input_ids", i)
        if not 0 <= token < rows:
            where = "below 2^31" if vocab_size is None else f"0 to {rows - 1} ({rows} embedding rows)"
            raise BadLine("token id outside the vocabulary", f" (position {i}): {token}; {where}")

    if ("loss_mask" in record) == ("labels" in record):
        raise BadLine("sample needs 'loss_mask' or 'labels'", f": keys seen: {keys}; exactly one of the two")
    if "loss_mask" in record:
        weights = _list(record, "loss_mask", len(ids))
        for i, weight in enumerate(weights):
            if type(weight) not in (int, float):
                raise BadLine(
                    "'loss_mask' holds the wrong type",
                    f" (position {i}): got {type_name(weight)} {shown(weight)}; 0, 1 or a weight",
                )
            if not (math.isfinite(weight) and weight >= 0):
                raise BadLine("weight out of range", f" (position {i}): {weight}; 0 or a finite positive number")
    else:
        labels = _list(record, "labels", len(ids))
        for i, label in enumerate(labels):
            _require_int(label, "labels", i)
            if label not in (IGNORED_LABEL, ids[i]):
                raise BadLine(
                    "label differs from its token",
                    f" (position {i}): {label}; {ids[i]} or {IGNORED_LABEL} (labels are not shifted)",
                )
        weights = [0 if label == IGNORED_LABEL else 1 for label in labels]

    if "position_ids" in record:
        positions = _list(record, "position_ids", len(ids))
        for i, position in enumerate(positions):
            _require_int(position, "position_ids", i)
            if position < 0 or (i and position <= positions[i - 1]):
                raise BadLine(
                    "positions do not increase", f" (position {i}): {position}; above {positions[i - 1] if i else -1}"
                )
    return Prepared(ids, weights)


def check(path: str, vocab_size: int | None, quiet: bool, as_json: bool) -> int:
    progress = Progress(file_size(path), quiet)
    samples = problems = tokens = trained = longest = untrained = first_marked = 0
    for line, offset, raw in read_lines(path):
        samples += 1
        progress.update(offset, samples)
        try:
            sample = read_sample(parse_line(raw, offset), vocab_size)
        except BadLine as problem:
            problems += 1
            if problems <= PROBLEMS_SHOWN:
                progress.clear()
                print(at(path, line, problem.column, "error", f"sample {samples}: {problem.text}"), file=sys.stderr)
            continue
        tokens += len(sample.input_ids)
        trained += sample.trained
        longest = max(longest, len(sample.input_ids))
        untrained += sample.trained == 0
        first_marked += bool(sample.weights[0])
    progress.clear()

    if samples == 0:
        raise Failure(f"no sample ({path}): 0 records; one prepared sample a line")
    if problems:
        more = f", the first {PROBLEMS_SHOWN} above" if problems > PROBLEMS_SHOWN else ""
        raise Failure(
            f"{problems} of {samples} samples are bad ({path}){more}: see the messages above; what `sft-data prepare` writes"
        )
    if trained == 0:
        raise Failure(f"no trained token ({path}): 0 in {samples} samples; at least one entry of loss_mask above 0")
    if as_json:
        print(
            json.dumps(
                {
                    "file": path,
                    "samples": samples,
                    "tokens": tokens,
                    "trained_tokens": trained,
                    "longest": longest,
                    "samples_without_trained_tokens": untrained,
                    "first_token_marked": first_marked,
                }
            )
        )
    elif not quiet:
        print(f"{path}: {samples:,} samples, {tokens:,} tokens, {trained:,} trained, longest {longest}: good")
        if untrained:
            print(f"  note: {untrained} samples have no trained token")
        if first_marked and untrained + first_marked:
            print(f"  note: {first_marked} samples mark their first token, which is never a target")
    return 0


def show(path: str, count: int, tokenizer_dir: str | None, colour: bool) -> int:
    tokenizer = load_tokenizer(tokenizer_dir) if tokenizer_dir else None
    begin, end = ("\x1b[32m", "\x1b[0m") if colour else ("[[", "]]")
    shown_samples = 0
    for line, offset, raw in read_lines(path):
        if shown_samples == count:
            break
        try:
            sample = read_sample(parse_line(raw, offset), tokenizer.get_vocab_size() if tokenizer else None)
        except BadLine as problem:
            raise Failure(f"bad sample ({path}:{line}:{problem.column}): {problem.text}") from None
        shown_samples += 1
        print(f"sample {shown_samples} ({path}:{line}): {len(sample.input_ids)} tokens, {sample.trained} trained")
        parts = []
        for marked, ids in _runs(sample):
            text = tokenizer.decode(ids, skip_special_tokens=False) if tokenizer else " ".join(map(str, ids))
            parts.append(f"{begin}{text}{end}" if marked else text)
        print(("" if tokenizer else " ").join(parts))
        print()
    if shown_samples == 0:
        raise Failure(f"no sample ({path}): 0 records; a file that `sft-data prepare` wrote")
    if not colour:
        print(
            "[[ ]] marks the trained tokens." + ("" if tokenizer else " Token ids: give --tokenizer DIR to see text.")
        )
    return 0


def _runs(sample: Prepared) -> list[tuple[bool, list[int]]]:
    """Neighbouring tokens with the same mark, together."""
    runs: list[tuple[bool, list[int]]] = []
    for i, (token, weight) in enumerate(zip(sample.input_ids, sample.weights)):
        marked = bool(weight) and i > 0
        if not runs or runs[-1][0] != marked:
            runs.append((marked, []))
        runs[-1][1].append(token)
    return runs
