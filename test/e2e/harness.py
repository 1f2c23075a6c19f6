"""What the end-to-end tests share: making plans, running them, and comparing what they dump.

Everything is made under one temporary folder that goes away with the process. Plans are made once for each set of options.

    SFT_BIN            folder of sftc, sft-run, sft-plan and sft_edit_plan (default: build/release/bin)
    SFT_LONG=1         also the long matrices
    SFT_REQUIRE_MODEL=1  a missing SmolLM2 is a failure instead of a skip
"""

import atexit
import dataclasses
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "test" / "e2e" / "goldens"
BIN = Path(os.environ.get("SFT_BIN", ROOT / "build" / "release" / "bin"))
MODEL = ROOT / "build" / "models" / "SmolLM2-135M-Instruct"
LONG = os.environ.get("SFT_LONG") == "1"

sys.path.insert(0, str(ROOT / "tools" / "scripts"))
import compare_dump  # noqa: E402
import numpy_llama  # noqa: E402

TEMPORARY = Path(tempfile.mkdtemp(prefix="sft-e2e-"))
atexit.register(shutil.rmtree, TEMPORARY, ignore_errors=True)

# Plain SGD at a constant rate: the test optimizer.
SGD = dict(optimizer="sgd", lr_schedule="constant", warmup_steps=0, weight_decay=0, clip=0)


@functools.cache
def counter():
    return iter(range(1 << 30))


def fresh(name: str) -> Path:
    """A path that nothing has used yet."""
    return TEMPORARY / f"{next(counter()):04d}-{name}"


def flags(options: dict) -> list[str]:
    """token_order="zigzag" -> --token-order zigzag; True is a flag alone, None and False nothing, a list many values."""
    words = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words += map(str, value if isinstance(value, (list, tuple)) else [value])
    return words


@dataclasses.dataclass
class Result:
    command: list[str]
    code: int
    out: str
    err: str
    seconds: float
    output: Path | None = None  # the folder of --output
    dump: Path | None = None

    def must(self, code: int = 0) -> "Result":
        if self.code != code:
            command = " ".join(self.command)
            raise AssertionError(f"exit code {self.code} instead of {code}: {command}\n{self.err[-3000:]}")
        return self

    def metrics(self, kind: str) -> list[dict]:
        lines = (self.output / "metrics.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["kind"] == kind]

    def event(self, name: str) -> dict:
        return next(line for line in self.metrics("event") if line["event"] == name)

    def step(self, number: int) -> Path:
        return self.dump / f"step-{number}"

    def loss(self, step: int | str = 1) -> dict:
        folder = self.dump / "eval" if step == "eval" else self.step(step)
        return json.loads((folder / "loss.json").read_text())

    def samples(self, step: int) -> list[int]:
        """Numbers of the samples of a step."""
        return sorted(map(int, compare_dump.load_file(self.step(step) / "token_loss.safetensors")))

    def discard(self) -> None:
        for folder in (self.output, self.dump):
            if folder:
                shutil.rmtree(folder, ignore_errors=True)


def call(program: str, *words, timeout: float = 120, cwd: Path | None = None) -> Result:
    command = [str(BIN / program), *map(str, words)]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, cwd=cwd)
    return Result(command, done.returncode, done.stdout, done.stderr, time.monotonic() - begin)


@functools.cache
def imported(folder: Path) -> Path:
    """The model file of a checkpoint folder, or of a bare config.json."""
    path = fresh("model.mlir")
    call("sftc", "import", folder, "-o", path).must()
    return path


@functools.cache
def _plan(folder: Path, options: tuple) -> Path:
    path = fresh("model.plan")
    call("sftc", "compile", imported(folder), "-o", path, *flags(dict(options))).must()
    return path


def plan(tokens: int, mesh: str = "", order: str | None = None, folder: Path = GOLDENS / "t", **options) -> Path:
    """A plan of a checkpoint folder. mesh: "cp=2,dp=2"; order: contiguous or zigzag."""
    words = dict(tokens=tokens, mesh=mesh or None, token_order=order, **options)
    return _plan(Path(folder), tuple(sorted(words.items(), key=lambda item: item[0])))


def run(plan: Path, *, weights: Path | None = GOLDENS / "t", dump: bool = True, output: bool = False, timeout: float = 120,
        check: bool = True, **options) -> Result:
    """sft-run; `dump` and `output` make folders for it. With check, anything but exit code 0 is a failure."""
    folders = {"dump": fresh("dump") if dump else None, "output": fresh("output") if output else None}
    words = dict(weights=weights, threads=2, quiet=True) | folders | options
    result = call("sft-run", plan, *flags(words), timeout=timeout)
    result.dump, result.output = folders["dump"], folders["output"]
    return result.must() if check else result


# ---------------------------------------------------------------------------------------------------------------------
# Data
# ---------------------------------------------------------------------------------------------------------------------


def sample(random: numpy.random.Generator, length: int, trained: int | list | None = None, vocabulary: int = 320) -> dict:
    """A random document. trained: the mask, or how many of its last tokens are trained (default: all but the first)."""
    trained = length - 1 if trained is None else trained
    mask = trained if isinstance(trained, list) else [int(i >= length - trained) for i in range(length)]
    return {"input_ids": random.integers(0, vocabulary, length).tolist(), "loss_mask": mask}


def write_data(samples: list[dict]) -> Path:
    path = fresh("data.jsonl")
    path.write_text("".join(json.dumps(entry) + "\n" for entry in samples))
    return path


def reference(samples: list[dict], folder: Path = GOLDENS / "t", **options) -> Result:
    """One step on one rank, one document a pack."""
    tokens = max(len(entry["input_ids"]) for entry in samples)
    options = dict(SGD, lr=0.5, steps=1, global_batch=len(samples)) | options
    return run(plan(tokens, folder=folder), weights=folder, data=write_data(samples), packing="none", **options)


@functools.cache
def _weights(folder: Path):
    # A golden's folder holds other tensors beside the model's.
    return json.loads((folder / "config.json").read_text()), compare_dump.load_file(folder / "model.safetensors")


def numpy_loss(samples: list[dict], folder: Path = GOLDENS / "t") -> float:
    """The token-mean loss by the plain numpy forward pass."""
    total = weight_sum = 0.0
    config, weights = _weights(folder)
    for entry in samples:
        mask = numpy.float64([0, *entry["loss_mask"][1:]])
        if mask.any():
            losses = numpy_llama.token_losses(config, weights, entry["input_ids"], entry.get("position_ids"))
            total += float((losses[mask > 0] * mask[mask > 0]).sum())
            weight_sum += float(mask.sum())
    return total / weight_sum


# ---------------------------------------------------------------------------------------------------------------------
# Comparing
# ---------------------------------------------------------------------------------------------------------------------


class Tally:
    """Counts the equalities of a module and keeps the worst errors; print it in tearDownModule."""

    def __init__(self):
        self.cases = 0
        self.report = compare_dump.Report()

    def take(self, report: compare_dump.Report) -> None:
        self.cases += 1
        for kind, worst in report.worst.items():
            if worst.ratio >= self.report.worst.setdefault(kind, compare_dump.Worst()).ratio:
                self.report.worst[kind] = worst
        if not report.passed:
            lines = report.text().splitlines()
            raise AssertionError("\n".join(lines[:20] + [f"... {len(lines) - 20} more"] * (len(lines) > 20)))

    def golden(self, dump: Path, golden: Path, optimizer: str = "sgd") -> None:
        self.take(compare_dump.compare_with_golden(dump, golden, optimizer))

    def same(self, dump: Path, reference: Path, optimizer: str = "sgd", start: Path | None = GOLDENS / "t") -> None:
        self.take(compare_dump.compare_dumps(dump, reference, optimizer, start))

    def same_gradients(self, ours: Result, reference: Result) -> None:
        """The loss and the gradients of step 1 only: for the same samples under other numbers."""
        report = compare_dump.Report()
        compare_dump.compare_losses(ours.loss(), reference.loss(), report)
        gradients = (compare_dump.load_file(result.step(1) / "gradients.safetensors") for result in (ours, reference))
        compare_dump.compare_gradients(*gradients, report)
        self.take(report)

    def same_runs(self, ours: Result, reference: Result, optimizer: str = "sgd", start: Path | None = GOLDENS / "t") -> None:
        """Every step of two runs."""
        steps = [sorted(folder.name for folder in result.dump.iterdir()) for result in (ours, reference)]
        if steps[0] != steps[1] or not steps[0]:
            raise AssertionError(f"steps {steps[0]}; expected {steps[1]}")
        for name in steps[0]:
            self.same(ours.dump / name, reference.dump / name, optimizer, start)

    def print(self, name: str) -> None:
        print(f"\n{name}: {self.cases} comparisons")
        for kind, worst in self.report.worst.items():
            print(f"  {kind:12s} worst {worst.ratio:6.3f} of its limit  (error {worst.error:.3g}, {worst.where})")


def same_files(test, ours: Path, reference: Path) -> None:
    """Two folders hold the same files with the same bytes."""
    names = [sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
             for folder in (ours, reference)]
    test.assertTrue(names[0])
    test.assertEqual(names[0], names[1])
    for name in names[0]:
        test.assertEqual((ours / name).read_bytes(), (reference / name).read_bytes(), name)
