#!/usr/bin/env python3
"""Shows the loss curves of two runs of sft-run side by side, and checks that they are the same training.

    compare_runs.py RUN_A RUN_B [--export DIR]

RUN_A and RUN_B are output folders of runs with the same options on different meshes. DIR is the output folder of an
evaluation (`sft-run --steps 0 --weights RUN_A/final --output DIR`) of what RUN_A exported. Checked are:

    every step      the losses of both runs differ by less than --max-difference, on the same trained tokens
    evaluation      the loss on held-out data fell by at least --min-fall from before the first step to after the last
    export          it has the evaluation loss of the end of training, to 1e-6 of it

Exit codes: 0 all of this holds; 1 it does not, or a folder cannot be read; 2 wrong usage. Needs only Python.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

EXPORT_LIMIT = 1e-6  # relative: the exported weights are the trained ones, so only the addition order could differ
MOST_LINES = 40  # of the table; longer runs show every n-th step
BAR = 32


class Failure(Exception):
    """A problem to tell the user in one line."""


class Run:
    """What metrics.jsonl tells of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / "metrics.jsonl"
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError) as error:
            raise Failure(f"cannot read the run ({path}): {getattr(error, 'strerror', None) or error}; the output folder of sft-run") from None
        self.train: list[dict[str, Any]] = [line for line in lines if line.get("kind") == "train"]
        self.eval: list[dict[str, Any]] = [line for line in lines if line.get("kind") == "eval"]
        mesh = next((line["mesh"] for line in lines if line.get("kind") == "run"), {})
        # Axes of size 1 say nothing, except that a mesh of one rank is worth saying.
        self.name = ",".join(f"{axis}={size}" for axis, size in mesh.items() if size > 1) or "one rank"

    def eval_loss(self, index: int) -> float:
        if not self.eval or self.eval[index]["eval_loss"] is None:
            raise Failure(f"no evaluation loss in the run ({self.folder}): null; train with --eval-data FILE")
        return self.eval[index]["eval_loss"]


def sparkline(values: list[float]) -> str:
    encoding = (sys.stdout.encoding or "ascii").lower()
    marks = "▁▂▃▄▅▆▇█" if encoding.startswith("utf") else "_.-=+*%#"
    low, high = min(values), max(values)
    scale = (len(marks) - 1) / (high - low) if high > low else 0
    return "".join(marks[round((value - low) * scale)] for value in values)


def check_same_steps(a: Run, b: Run) -> None:
    for run in (a, b):
        if not run.train:
            raise Failure(f"no step in the run ({run.folder}): 0; a run with --steps of at least 1")
    if len(a.train) != len(b.train):
        raise Failure(f"the runs have different lengths ({b.folder}): {len(b.train)} steps; {len(a.train)}")
    for left, right in zip(a.train, b.train):
        for key in ("step", "trained_tokens"):
            if left[key] != right[key]:
                raise Failure(f"the runs trained on different data ({b.folder}, step {right['step']}): {key} {right[key]}; {left[key]}")


def show_curves(a: Run, b: Run) -> float:
    """Prints the table and both curves; returns the largest difference."""
    rows = [(x["step"], x["loss"], y["loss"]) for x, y in zip(a.train, b.train)]
    # A step without a trained token has no loss, on either mesh.
    for step, left, right in rows:
        if (left is None) != (right is None):
            raise Failure(f"only one of the runs has a loss (step {step}): {left} and {right}; both or neither")
    rows = [row for row in rows if row[1] is not None]
    if not rows:
        raise Failure(f"no step has a trained token ({a.folder}): {len(a.train)} steps; mark trained tokens in the data")
    high = max(max(left, right) for _, left, right in rows)
    every = -(-len(rows) // MOST_LINES)
    width = max(10, len(a.name), len(b.name))
    print(f"training loss (nats a token)\n\n{'step':>6}  {a.name:>{width}}  {b.name:>{width}}  difference")
    for i, (step, left, right) in enumerate(rows):
        if i % every == 0 or i == len(rows) - 1:
            bar = "#" * round(BAR * left / high) if high > 0 else ""
            print(f"{step:>6}  {left:>{width}.6f}  {right:>{width}.6f}  {abs(left - right):>10.1e}  {bar}")
    print()
    width = max(len(a.name), len(b.name))
    for run, column in ((a, 1), (b, 2)):
        losses = [row[column] for row in rows]
        print(f"  {run.name:<{width}}  {sparkline(losses)}  {losses[0]:.4f} to {losses[-1]:.4f}")
    return max(abs(left - right) for _, left, right in rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="compare_runs.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs=2, type=Path, metavar="RUN", help="output folder of sft-run")
    parser.add_argument("--export", type=Path, metavar="DIR", help="output folder of an evaluation of the first run's final/")
    parser.add_argument(
        "--max-difference", type=float, default=1e-4, metavar="X", help="largest difference of a loss (default: 1e-4)"
    )
    parser.add_argument(
        "--min-fall", type=float, default=0.2, metavar="X", help="least fall of the evaluation loss, nats (default: 0.2)"
    )
    arguments = parser.parse_args()

    problems: list[str] = []

    def check(holds: bool, what: str) -> None:
        print(f"  {'ok    ' if holds else 'FAILED'}  {what}")
        if not holds:
            problems.append(what)

    try:
        a, b = (Run(folder) for folder in arguments.runs)
        check_same_steps(a, b)
        worst = show_curves(a, b)
        print("\nchecks")
        limit, least = arguments.max_difference, arguments.min_fall
        check(worst < limit, f"largest difference between the runs in any step: {worst:.1e} (below {limit:g})")
        for run in (a, b):
            first, last = run.eval_loss(0), run.eval_loss(-1)
            check(
                first - last >= least,
                f"evaluation loss, {run.name}: {first:.4f} to {last:.4f}, a fall of {first - last:.4f} (at least {least:g})",
            )
        if arguments.export:
            export, end = Run(arguments.export).eval_loss(-1), a.eval_loss(-1)
            off = abs(export - end)
            check(off <= EXPORT_LIMIT * abs(end), f"evaluation loss of the export: {export:.6f}, off by {off:.1e} (0, or 1e-6 of it)")
    except Failure as failure:
        print(f"compare_runs: error: {failure}", file=sys.stderr)
        return 1
    except (KeyError, TypeError) as error:
        print(
            f"compare_runs: error: metrics.jsonl is not what sft-run writes ({type(error).__name__}): {error}; a run of this version",
            file=sys.stderr,
        )
        return 1
    if problems:
        print(f"compare_runs: error: {len(problems)} of the checks failed: see above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
