"""The command `prepare`: conversations in, tokenized samples out."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, TextIO

from .conversation import Messages, read_conversation
from .errors import BadLine, Failure, at, shown
from .jsonl import file_size, parse_line, read_lines
from .progress import Progress
from .spans import ControlTokens, Rendered, render_with_spans, to_sample
from .template import ChatTemplate, embedding_rows, load_tokenizer

BATCH = 64  # conversations tokenized together, on all cores
MESSAGES_SHOWN = 10  # bad lines printed one by one


@dataclass
class Pending:
    """A rendered conversation that waits for its batch to be tokenized."""

    path: str
    line: int
    rendered: Rendered


@dataclass
class Problems:
    """Bad lines: the first ones printed where they are, all of them counted by reason."""

    severity: str
    progress: Progress
    reasons: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[str, int]] = field(default_factory=dict)  # reason -> (file, line)
    keys: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.reasons.total()

    def add(self, path: str, line: int, problem: BadLine) -> None:
        self.reasons[problem.reason] += 1
        self.first.setdefault(problem.reason, (path, line))
        self.keys += [key for key in problem.keys if key not in self.keys]
        if self.count <= MESSAGES_SHOWN:
            self.progress.clear()
            text = problem.text if self.severity == "error" else f"line skipped: {problem.text}"
            print(at(path, line, problem.column, self.severity, text), file=sys.stderr)
        elif self.count == MESSAGES_SHOWN + 1:
            print(f"sft-data: {self.severity}: more bad lines follow; the summary counts them", file=sys.stderr)

    def top(self) -> str:
        parts = [
            f"{count} x {reason} (first at {self.first[reason][0]}:{self.first[reason][1]})"
            for reason, count in self.reasons.most_common(5)
        ]
        keys = f"; keys seen: {', '.join(shown(key, 30) for key in self.keys[:12])}" if self.keys else ""
        return ", ".join(parts) + keys


@contextlib.contextmanager
def atomic_output(path: str) -> Iterator[TextIO]:
    """A file that appears under its name only when whole. Devices and pipes are written directly."""
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            if target.is_dir():
                raise Failure(f"output is a folder (-o): {path}; a file name")
            with open(target, "w", encoding="utf-8", newline="\n") as file:
                yield file
            return
        temporary = target.with_name(f".{target.name}.tmp-{os.getpid()}")
        try:
            with open(temporary, "w", encoding="utf-8", newline="\n") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(
            f"cannot write output (-o): {path}: {error.strerror}; a file in a folder that exists, with room on the disk"
        ) from None


class Preparation:
    def __init__(self, tokenizer_dir: str, skip_bad_lines: bool, allow_empty_answers: bool, progress: Progress) -> None:
        self.tokenizer = load_tokenizer(tokenizer_dir)
        self.template = ChatTemplate(tokenizer_dir)
        self.rows = embedding_rows(tokenizer_dir)
        self.control = ControlTokens(self.tokenizer, self.template)
        self.skip = skip_bad_lines
        self.allow_empty_answers = allow_empty_answers
        self.progress = progress
        self.problems = Problems("warning" if skip_bad_lines else "error", progress)
        self.records = 0
        self.lengths: list[int] = []
        self.trained = 0
        self.straddling = 0
        self.ignored_keys: Counter[str] = Counter()
        self.special_in_text: Counter[str] = Counter()
        self.pending: list[Pending] = []

    def run(self, inputs: list[str], output: TextIO) -> None:
        finished_bytes = 0
        for path in inputs:
            for line, offset, raw in read_lines(path):
                self.records += 1
                self.progress.update(finished_bytes + offset, self.records)
                try:
                    self._take(path, line, parse_line(raw, offset))
                except BadLine as problem:
                    self.problems.add(path, line, problem)
                # After a bad line in strict mode nothing will be kept: the rest is only looked at, to report all at once.
                if len(self.pending) >= BATCH and (self.skip or not self.problems.count):
                    self._flush(output)
            finished_bytes += file_size(path)
        if self.skip or not self.problems.count:
            self._flush(output)
        self.progress.clear()

    def _take(self, path: str, line: int, record: dict[str, Any]) -> None:
        messages: Messages = read_conversation(record, self.allow_empty_answers, self.ignored_keys)
        self.control.refuse_in(messages)
        rendered = render_with_spans(self.template, messages)
        self.special_in_text.update(self.control.others_in(messages))
        if not self.problems.count or self.skip:
            self.pending.append(Pending(path, line, rendered))

    def _flush(self, output: TextIO) -> None:
        # The template has written all special tokens already, so the tokenizer adds none.
        encodings = self.tokenizer.encode_batch([item.rendered.text for item in self.pending], add_special_tokens=False)
        for item, encoding in zip(self.pending, encodings):
            sample = to_sample(encoding.ids, encoding.offsets, item.rendered.spans, self.control.ids)
            trained = sum(sample.loss_mask)
            try:
                if self.rows is not None and max(sample.input_ids, default=0) >= self.rows:
                    raise BadLine(
                        "token id outside the model's vocabulary",
                        f": {max(sample.input_ids)}; below vocab_size {self.rows} of config.json",
                    )
                if not trained:
                    raise BadLine(
                        "no trained token",
                        ": the chat template renders the answers to nothing; a template that renders them",
                    )
            except BadLine as problem:
                self.problems.add(item.path, item.line, problem)
                continue
            self.lengths.append(len(sample.input_ids))
            self.trained += trained
            self.straddling += sample.straddling
            # dumps, not dump: only the former is written in C
            output.write(
                json.dumps({"input_ids": sample.input_ids, "loss_mask": sample.loss_mask}, separators=(",", ":")) + "\n"
            )
        self.pending.clear()

    def require_result(self) -> None:
        """Strict mode: no bad line at all. Otherwise: at least one sample."""
        if self.records == 0:
            raise Failure("no usable sample (INPUT): 0 records; at least one conversation a line")
        usable = self.records - self.problems.count
        if usable == 0:
            raise Failure(
                f"no usable sample (INPUT): 0 of {self.records} usable: {self.problems.top()}; see the messages above"
            )
        if self.problems.count and not self.skip:
            raise Failure(
                f"{self.problems.count} of {self.records} lines are bad (INPUT): {self.problems.top()}; "
                "correct them, or pass --skip-bad-lines to leave them out"
            )

    def summary(self, output: str) -> dict[str, Any]:
        ordered = sorted(self.lengths)

        def quantile(q: float) -> int:
            return ordered[int(q * (len(ordered) - 1))]

        return {
            "output": output,
            "records": self.records,
            "samples": len(ordered),
            "skipped": self.problems.count,
            "skipped_reasons": dict(self.problems.reasons.most_common()),
            "tokens": sum(ordered),
            "trained_tokens": self.trained,
            "sample_tokens": {
                "min": ordered[0],
                "mean": round(sum(ordered) / len(ordered), 1),
                "median": quantile(0.5),
                "p90": quantile(0.9),
                "p99": quantile(0.99),
                "max": ordered[-1],
            },
            "straddling_tokens": self.straddling,
            "ignored_keys": dict(self.ignored_keys.most_common()),
            "special_tokens_in_text": dict(self.special_in_text.most_common()),
        }


def prepare(
    tokenizer: str,
    inputs: list[str],
    output: str,
    skip_bad_lines: bool,
    allow_empty_answers: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    for path in inputs:
        if os.path.realpath(path) == os.path.realpath(output):
            raise Failure(f"output is one of the inputs (-o): {output}; another file name")
    progress = Progress(sum(file_size(path) for path in inputs), quiet)
    work = Preparation(tokenizer, skip_bad_lines, allow_empty_answers, progress)
    try:
        with atomic_output(output) as file:
            work.run(inputs, file)
            work.require_result()
    finally:
        progress.clear()

    summary = work.summary(output)
    if as_json:
        print(json.dumps(summary))
    elif not quiet:
        print_summary(summary)
    return 0


def print_summary(summary: dict[str, Any]) -> None:
    def listed(counts: dict[str, int]) -> str:
        return ", ".join(f"{key} ({count})" for key, count in list(counts.items())[:8])

    lengths = summary["sample_tokens"]
    share = 100 * summary["trained_tokens"] / summary["tokens"]
    print(
        f"{summary['output']}: {summary['samples']:,} samples, {summary['tokens']:,} tokens, "
        f"{summary['trained_tokens']:,} trained ({share:.1f} %)"
    )
    print("  tokens a sample: " + ", ".join(f"{name} {value}" for name, value in lengths.items()))
    if summary["skipped"]:
        print(f"  skipped: {summary['skipped']} of {summary['records']} lines: {listed(summary['skipped_reasons'])}")
    if summary["straddling_tokens"]:
        print(f"  not trained: {summary['straddling_tokens']} tokens that lie across the edge of an answer")
    if summary["ignored_keys"]:
        print(f"  keys passed over: {listed(summary['ignored_keys'])}")
    if summary["special_tokens_in_text"]:
        print(
            f"  samples whose text holds a special token of the tokenizer: {listed(summary['special_tokens_in_text'])}"
        )
