#!/usr/bin/env python3
"""Compares a step folder that `sft-run --dump` wrote with a golden, or with another such folder.

    compare_dump.py DUMP/step-1 test/e2e/goldens/t                        against a golden
    compare_dump.py DUMP/step-3 test/e2e/goldens/t --optimizer adamw
    compare_dump.py DUMP_CP2/step-2 DUMP_CP1/step-2                       against another run
    compare_dump.py DUMP/step-3 OTHER/step-3 --optimizer sgd --start test/e2e/goldens/t

What a golden holds of a step is compared: step 1 the loss, the token losses and the gradients; step 2 the loss; step 3
the loss and the weights after its update; step 0 (an evaluation) the loss and the token losses, to golden.json's own
`limits` where it has some. Two dumps are compared
in every file that either has. A file, tensor or sample that one side lacks is a failure, and so is a NaN; but sft-run
leaves samples without a trained token out of training, so a sample may be missing whose reference is zero throughout.

Limits (fp32). `max|X|` is the largest entry of the reference's tensor X, `max|model|` of all its tensors:

    loss         1e-6 |loss| + 1e-7
    grad norm    1e-5 |norm| + 1e-7     the norm follows the gradients, so it gets their relative limit
    token loss   3e-6 |loss| + 1e-6     one token's error does not average out as the mean's does (fp32 PyTorch comes
                                        within a tenth of this on the small models)
    gradient     1e-5 max|gradient| + 1e-6 max|model's gradients|
    SGD weights  the gradient rule on the updates, weights - start, which are the learning rate times the sum of the
                 gradients; plus half a unit in the last place of the weight (2^-24 |weight|) for each step and for the
                 stored reference, without which no update of a weight near 1 could pass
    weights      1e-5 max|weights|      after AdamW, and after SGD without --start

Needs numpy and safetensors. Tests import compare_with_golden and compare_dumps.
"""

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy
from safetensors.numpy import load_file

LOSS = (1e-6, 1e-7)
GRAD_NORM = (1e-5, 1e-7)
TOKEN_LOSS = (3e-6, 1e-6)
GRADIENT = (1e-5, 1e-6)
ADAMW_WEIGHTS = 1e-5
HALF_ULP = 2.0**-24

LAST_GOLDEN_STEP = 3


@dataclass
class Worst:
    """The largest error of one kind, as a fraction of its limit."""

    ratio: float = 0.0
    where: str = ""
    error: float = 0.0
    limit: float = 0.0


@dataclass
class Report:
    worst: dict[str, Worst] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    compared: int = 0  # numbers

    @property
    def passed(self) -> bool:
        """Comparing nothing is no success."""
        return not self.failures and self.compared > 0

    def add(self, kind: str, name: str, ours, reference, limit) -> None:
        """Notes |ours - reference| against the limit, entry by entry (a scalar limit holds for every entry)."""
        ours, reference = numpy.atleast_1d(numpy.float64(ours)), numpy.atleast_1d(numpy.float64(reference))
        if ours.shape != reference.shape:
            self.failures.append(f"{kind} {name}: shape {ours.shape}; expected {reference.shape}")
            return
        self.worst.setdefault(kind, Worst())
        if not ours.size:
            return
        self.compared += ours.size
        if not (numpy.isfinite(ours).all() and numpy.isfinite(reference).all()):
            self.failures.append(f"{kind} {name}: not finite")
            return
        error, limit = abs(ours - reference), numpy.broadcast_to(numpy.float64(limit), ours.shape)
        # A limit of 0 stands for a reference that is 0 throughout, which only 0 meets.
        ratio = numpy.divide(error, limit, out=numpy.where(error > 0, numpy.inf, 0.0), where=limit > 0)
        at = numpy.unravel_index(ratio.argmax(), ratio.shape)
        found = Worst(float(ratio[at]), f"{name}{list(map(int, at))}", float(error[at]), float(limit[at]))
        if found.ratio > 1:
            count = int((ratio > 1).sum())
            self.failures.append(
                f"{kind} {found.where}: {float(ours[at])!r}; expected {float(reference[at])!r} +- {found.limit:.3g} "
                f"({found.ratio:.3g} times the limit; {count} of {ratio.size} entries over it)"
            )
        if found.ratio > self.worst[kind].ratio:
            self.worst[kind] = found

    def same_names(self, kind: str, ours, reference) -> list[str]:
        """The names both have; the others are failures."""
        self.failures += [f"{kind} {name}: missing" for name in sorted(set(reference) - set(ours))]
        self.failures += [f"{kind} {name}: unexpected" for name in sorted(set(ours) - set(reference))]
        return sorted(set(ours) & set(reference))

    def text(self) -> str:
        lines = [
            f"{kind:14s} worst {worst.ratio:8.2g} of its limit  (error {worst.error:.3g}, {worst.where or 'all equal'})"
            for kind, worst in self.worst.items()
        ]
        lines += [f"FAIL {failure}" for failure in self.failures]
        if not self.compared:
            lines.append("FAIL nothing to compare")
        return "\n".join(lines)


# ---------------------------------------------------------------------------------------------------------------------
# The rules
# ---------------------------------------------------------------------------------------------------------------------


def largest(tensors: dict[str, numpy.ndarray]) -> float:
    """The largest finite magnitude among all tensors."""
    return max((float(abs(tensor).max()) for tensor in tensors.values() if tensor.size), default=0.0)


def compare_losses(ours: dict, reference: dict, report: Report, tolerance=LOSS) -> None:
    """Entries of loss.json; only what the reference has is compared, since an evaluation has no grad_norm."""
    name = f"step {reference.get('step', 0)} "
    for key in ("step", "trained_tokens"):
        if key in reference and ours.get(key) != reference[key]:
            report.failures.append(f"{key}: {ours.get(key)}; expected {reference[key]}")
    for key, kind, (relative, absolute) in (("loss", "loss", tolerance), ("grad_norm", "grad norm", GRAD_NORM)):
        if key not in reference:
            continue
        if (ours.get(key) is None) != (reference[key] is None):
            report.failures.append(f"{kind} {name}: {ours.get(key)}; expected {reference[key]}")
        elif reference[key] is not None:
            report.add(kind, name, ours[key], reference[key], relative * abs(reference[key]) + absolute)


def compare_token_losses(ours: dict, reference: dict, report: Report, tolerance=TOKEN_LOSS) -> None:
    relative, absolute = tolerance
    reference = {name: losses for name, losses in reference.items() if name in ours or losses.any()}
    for name in report.same_names("token loss", ours, reference):
        limit = relative * abs(numpy.float64(reference[name])) + absolute
        # An untrained token's loss is 0, not nearly 0.
        report.add("token loss", name, ours[name], reference[name], numpy.where(reference[name] == 0, 0, limit))


def compare_gradients(ours: dict, reference: dict, report: Report) -> None:
    of_tensor, of_model = GRADIENT
    model = largest(reference)
    for name in report.same_names("gradient", ours, reference):
        limit = of_tensor * largest({name: reference[name]}) + of_model * model
        report.add("gradient", name, ours[name], reference[name], limit)


def compare_sgd_weights(ours: dict, reference: dict, start: dict, steps: int, report: Report) -> None:
    of_tensor, of_model = GRADIENT
    names = []
    for name in report.same_names("SGD weights", ours, reference):
        shapes = [tensors[name].shape if name in tensors else None for tensors in (ours, reference, start)]
        if len(set(shapes)) == 1:
            names.append(name)
        else:
            ours_shape, expected, at_start = shapes
            report.failures.append(f"SGD weights {name}: shape {ours_shape}; expected {expected}, at start {at_start}")
    updates = {name: numpy.float64(reference[name]) - start[name] for name in names}
    model = largest(updates)
    for name, update in updates.items():
        rounding = (steps + 1) * HALF_ULP * abs(numpy.float64(reference[name]))
        limit = of_tensor * largest({name: update}) + of_model * model + rounding
        report.add("SGD weights", name, numpy.float64(ours[name]) - start[name], update, limit)


def compare_adamw_weights(ours: dict, reference: dict, report: Report) -> None:
    for name in report.same_names("weights", ours, reference):
        limit = ADAMW_WEIGHTS * largest({name: reference[name]})
        report.add("weights", name, ours[name], reference[name], limit)


# ---------------------------------------------------------------------------------------------------------------------
# Folders
# ---------------------------------------------------------------------------------------------------------------------


def read_tensors(path: Path) -> dict[str, numpy.ndarray]:
    """A safetensors file, or the files of a checkpoint folder."""
    if path.is_dir():
        files = sorted(path.glob("model*.safetensors"))
        return {name: tensor for file in files for name, tensor in load_file(file).items()}
    return load_file(path)


def read_dump_tensors(folder: Path, kind: str, report: Report) -> dict[str, numpy.ndarray]:
    path = folder / f"{kind}.safetensors"
    if path.exists():
        return load_file(path)
    report.failures.append(f"{path}: missing")
    return {}


def compare_with_golden(dump: Path, golden: Path, optimizer: str = "sgd", report: Report | None = None) -> Report:
    """A step's folder of a dump against a golden's folder; `optimizer` is the run's."""
    dump, golden, report = Path(dump), Path(golden), report or Report()
    description = json.loads((golden / "golden.json").read_text())
    ours = json.loads((dump / "loss.json").read_text())
    step = ours["step"]
    if step == 0:
        # A real model's golden brings limits of its own: its depth and vocabulary cost fp32 more than a small model's.
        limits = {"loss": LOSS, "token loss": TOKEN_LOSS} | description.get("limits", {})
        compare_losses(ours, description["eval"], report, limits["loss"])
        # A golden without steps has only these token losses.
        files = [golden / name for name in ("eval_token_loss.safetensors", "token_loss.safetensors")]
        reference = load_file(files[0] if files[0].exists() else files[1])
        compare_token_losses(read_dump_tensors(dump, "token_loss", report), reference, report, limits["token loss"])
        return report

    path = golden / "losses.json"
    losses = json.loads(path.read_text()) if path.exists() else {}
    if step > len(losses.get(optimizer, [])):
        held = ", ".join(f"{kind} to step {len(entries)}" for kind, entries in losses.items())
        report.failures.append(f"{golden}: no step {step} of {optimizer}; it has {held or 'an evaluation'}")
        return report
    compare_losses(ours, losses[optimizer][step - 1], report)
    if step == 1:
        reference = load_file(golden / "token_loss.safetensors")
        compare_token_losses(read_dump_tensors(dump, "token_loss", report), reference, report)
        compare_gradients(read_dump_tensors(dump, "gradients", report), load_file(golden / "step1.safetensors"), report)
    weights = golden / f"{optimizer}.safetensors"
    if step == LAST_GOLDEN_STEP and weights.exists():
        ours, reference = read_dump_tensors(dump, "weights", report), load_file(weights)
        if optimizer == "sgd":
            start = read_tensors(golden / description["weights"])
            compare_sgd_weights(ours, reference, start, step, report)
        else:
            compare_adamw_weights(ours, reference, report)
    return report


def compare_dumps(dump: Path, reference: Path, optimizer: str = "adamw", start: Path | None = None,
                  report: Report | None = None) -> Report:
    """Two step folders; `start` (a checkpoint folder) gives SGD weights their tighter rule."""
    dump, reference, report = Path(dump), Path(reference), report or Report()
    losses = [json.loads((folder / "loss.json").read_text()) for folder in (dump, reference)]
    compare_losses(*losses, report)
    for kind in ("token_loss", "gradients", "weights"):
        if not any((folder / f"{kind}.safetensors").exists() for folder in (dump, reference)):
            continue
        ours, theirs = (read_dump_tensors(folder, kind, report) for folder in (dump, reference))
        if kind == "token_loss":
            compare_token_losses(ours, theirs, report)
        elif kind == "gradients":
            compare_gradients(ours, theirs, report)
        elif optimizer == "sgd" and start is not None:
            compare_sgd_weights(ours, theirs, read_tensors(Path(start)), losses[1]["step"], report)
        else:
            compare_adamw_weights(ours, theirs, report)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=Path, help="a step's folder of a dump")
    parser.add_argument("reference", type=Path, help="a golden's folder, or a step's folder of another dump")
    parser.add_argument("--optimizer", choices=("sgd", "adamw"), default="sgd", help="of the run (default: sgd)")
    parser.add_argument("--start", metavar="PATH", type=Path,
                        help="the weights before step 1, for the SGD rule between two dumps")
    options = parser.parse_args()
    try:
        if (options.reference / "golden.json").exists():
            report = compare_with_golden(options.dump, options.reference, options.optimizer)
        else:
            report = compare_dumps(options.dump, options.reference, options.optimizer, options.start)
    except (OSError, ValueError, KeyError) as problem:
        where = f"{options.dump}, {options.reference}"
        print(f"compare_dump.py: error: cannot compare ({where}): {problem}", file=sys.stderr)
        return 1
    print(report.text())
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
