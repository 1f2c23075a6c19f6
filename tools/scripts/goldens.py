"""Makes the goldens: what transformers' own LlamaForCausalLM computes, for the tests to judge sft-run by.

Run through goldens.sh. Everything is computed one document per forward call, without padding or packing:

    loss = sum(weight * cross entropy) / sum(weight)    over the trained tokens of a step's samples

Each golden is computed twice: in fp32, by transformers as it is, and in fp64 from the same fp32 weights. The fp64
numbers, rounded to fp32, are what is stored: they carry no noise of their own. How far fp32 PyTorch is from them, as a
fraction of compare_dump.py's limits, stands in golden.json under `headroom`.

A golden's folder:

    golden.json                   data, weights, the flags that reproduce the steps, the samples of each step, headroom
    config.json model.safetensors the model as save_pretrained writes it (where golden.json says "weights": ".")
    losses.json                   per optimizer and step: loss, grad_norm, trained_tokens
    step1.safetensors             gradients of step 1 before clipping
    token_loss.safetensors        step 1: cross entropy of each token as a target, unweighted, by sample number; 0 where
                                  the token is not trained
    eval_token_loss.safetensors   the same for every sample of the data, at the initial weights
    sgd.safetensors, adamw.safetensors   weights after three steps
"""

import argparse
import contextlib
import hashlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import torch
import transformers
from safetensors.numpy import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama

import compare_dump

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "test" / "e2e" / "goldens"
REAL_MODEL = ROOT / "build" / "models" / "SmolLM2-135M-Instruct"
REAL_DATA = ROOT / "build" / "data" / "val.tokens.jsonl"

STEPS = 3
# The learning rate makes an update large against the rounding of a weight near 1.
SGD = {"lr": 0.5, "weight_decay": 0.0, "clip": None}
# Every step's norm is above 0.5, so that clipping acts; eps is large enough for its effect to reach the weights.
ADAMW = {"lr": 1e-3, "eps": 1e-4, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "clip": 0.5}


# ---------------------------------------------------------------------------------------------------------------------
# Models
# ---------------------------------------------------------------------------------------------------------------------

MODEL_T = dict(
    num_hidden_layers=2, hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
    intermediate_size=128, rms_norm_eps=1e-6, vocab_size=320, max_position_embeddings=512, initializer_range=0.1,
    tie_word_embeddings=False, use_cache=False, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
)

# Small original_max_position_embeddings, so that all three of the rule's frequency bands occur below 50 tokens.
LLAMA3_ROPE = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}

VARIANTS = {
    "t": {},
    "t-tied": dict(tie_word_embeddings=True),
    # Neither q's width nor head_dim follows from the hidden size.
    "t-heads-6-3": dict(hidden_size=48, num_attention_heads=6, num_key_value_heads=3, head_dim=16),
    "t-bias-4-4": dict(num_key_value_heads=4, attention_bias=True, mlp_bias=True),
    "t-llama3-rope": dict(rope_parameters=LLAMA3_ROPE),
}


def old_config(config: dict) -> dict:
    """The same config with the keys that transformers wrote before version 5."""
    config = dict(config)
    rope = dict(config.pop("rope_parameters"))
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.57.6"
    return dict(sorted(config.items()))


def make_model(overrides: dict, seed: int) -> LlamaForCausalLM:
    """fp32 weights from a frozen generator: matrices and biases N(0, 0.1), norms 1 + N(0, 0.1)."""
    model = LlamaForCausalLM._from_config(LlamaConfig(**(MODEL_T | overrides)), attn_implementation="eager")
    random = numpy.random.RandomState(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            value = 0.1 * random.standard_normal(tuple(parameter.shape)) + ("norm" in name)
            parameter.copy_(torch.from_numpy(value))
    return model.float().eval()


def save_model(model: LlamaForCausalLM, folder: Path, old_keys: str | None) -> None:
    """Writes the checkpoint; `old_keys` names the file that gets the config with the keys of before version 5."""
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)
    config = json.loads((folder / "config.json").read_text())
    if old_keys:
        write_json(folder / old_keys, old_config(config))
        # Both spellings must mean the same model to transformers.
        again = LlamaConfig.from_dict(json.loads((folder / old_keys).read_text()))
        frequencies = modeling_llama.LlamaRotaryEmbedding(again).inv_freq
        assert torch.equal(frequencies, model.model.rotary_emb.inv_freq), folder
    same = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
    assert all(torch.equal(value, same[name]) for name, value in model.state_dict().items()), folder


@contextlib.contextmanager
def in_double():
    """Takes the casts to fp32 out of transformers' norm and attention, so that a double model is double throughout.

    The rotary tables stay as they are: computed in fp32, then widened, they hold the values of the fp32 model.
    """

    def norm(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    def attention(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
        key = modeling_llama.repeat_kv(key, module.num_key_value_groups)
        value = modeling_llama.repeat_kv(value, module.num_key_value_groups)
        scores = query @ key.transpose(2, 3) * scaling
        # Equal to the additive mask that transformers makes, and independent of how it makes it.
        rows = torch.arange(scores.shape[-1])
        scores = scores.masked_fill(rows[None, :] > rows[:, None], -torch.inf)
        weights = scores.softmax(-1)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    saved = modeling_llama.LlamaRMSNorm.forward, modeling_llama.eager_attention_forward
    modeling_llama.LlamaRMSNorm.forward, modeling_llama.eager_attention_forward = norm, attention
    try:
        yield
    finally:
        modeling_llama.LlamaRMSNorm.forward, modeling_llama.eager_attention_forward = saved


# ---------------------------------------------------------------------------------------------------------------------
# Data
# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Sample:
    input_ids: list[int]
    loss_mask: list[float]
    position_ids: list[int] | None = None

    @property
    def weights(self) -> list[float]:
        """A document's first token is never a target, whatever the mask says."""
        return [0, *self.loss_mask[1:]]

    @property
    def trained_tokens(self) -> int:
        return sum(weight > 0 for weight in self.weights)

    def __len__(self) -> int:
        return len(self.input_ids)

    def json(self) -> str:
        entries = {"input_ids": self.input_ids, "loss_mask": self.loss_mask, "position_ids": self.position_ids}
        return json.dumps({key: value for key, value in entries.items() if value is not None}, separators=(",", ":"))


def read_samples(path: Path) -> list[Sample]:
    samples = []
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        samples.append(Sample(entry["input_ids"], entry["loss_mask"], entry.get("position_ids")))
    return samples


def write_samples(path: Path, samples: list[Sample]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(sample.json() + "\n" for sample in samples))


def random_sample(random: numpy.random.RandomState, length: int, mask: str, vocabulary: int = 320) -> Sample:
    tokens = random.randint(0, vocabulary, length).tolist()
    if mask == "none":
        trained = [0] * length
    elif mask == "all":
        trained = [1] * length
    elif mask == "answer":  # a prompt, then an answer
        begin = random.randint(1, max(2, length))
        trained = [int(i >= begin) for i in range(length)]
    elif mask == "turns":  # scattered
        trained = random.randint(0, 2, length).tolist()
    else:
        assert mask == "weights"
        trained = random.choice([0, 0.25, 0.5, 1, 1.5], length).tolist()
    return Sample(tokens, trained)


def default_max_documents(tokens: int) -> int:
    return max(tokens // 32, 16)


def pack_in_order(samples: list[Sample], tokens: int, untrained_too: bool = True) -> list[list[int]]:
    """`--packing order`: fills packs in file order; a document that does not fit begins the next pack."""
    packs, used = [], tokens + 1
    for number, sample in enumerate(samples):
        if not untrained_too and sample.trained_tokens == 0:
            continue
        if used + len(sample) > tokens or len(packs[-1]) == default_max_documents(tokens):
            packs.append([])
            used = 0
        packs[-1].append(number)
        used += len(sample)
    return packs


def plan_steps(samples: list[Sample], tokens: int, global_batch: int) -> list[list[int]]:
    """The samples of each step, by number; refuses data whose trained samples per pack depend on unstated rules."""
    packs = pack_in_order(samples, tokens)
    assert all(len(sample) <= tokens for sample in samples)
    # The same packs whether or not untrained samples take room, and with any limit on documents above the default.
    trained = [[number for number in pack if samples[number].trained_tokens] for pack in packs]
    used = packs[: STEPS * global_batch]
    assert [pack for pack in trained if pack] == pack_in_order(samples, tokens, untrained_too=False)
    assert all(len(pack) < default_max_documents(tokens) for pack in used)
    steps = [sum(packs[i : i + global_batch], []) for i in range(0, len(packs), global_batch)]
    return steps[:STEPS]


def random_block(random, lengths: list[int], masks: list[str]) -> list[Sample]:
    """Documents of these lengths in random order, but the longest first: it never fits into the pack before."""
    lengths = [max(lengths), *random.permutation(sorted(lengths)[:-1])]
    return [random_sample(random, int(length), masks[random.randint(len(masks))]) for length in lengths]


def main_samples() -> list[Sample]:
    """Three packs of 2048 tokens, each with documents of every length from 1 to 50 and some longer; then a rest.

    Real tokens 2048, 2041 and 2033: a pack without padding, one with 7 and one with 15 padded rows.
    """
    random = numpy.random.RandomState(1)
    samples = []
    for total in (2048, 2041, 2033):
        longer = [128, 97, 64, 83, 71, 109, 100]
        rest = total - sum(range(1, 51)) - sum(longer)
        block = random_block(random, [*range(1, 51), *longer, rest], ["answer", "answer", "turns", "all"])
        for number in [i for i, sample in enumerate(block) if len(sample) in (2, 11, 18)]:
            block[number] = random_sample(random, len(block[number]), "none")
        samples += block
    samples += random_block(random, [128, 3, 17], ["answer"])
    return samples


def small_pack_samples() -> list[Sample]:
    """Ten packs of at most 128 tokens, for three steps of three packs and a rest."""
    random = numpy.random.RandomState(2)
    samples = []
    for _ in range(10):
        lengths = [random.randint(45, 51)]
        total = random.randint(112, 129)
        while total - sum(lengths) > 0:
            lengths.append(min(random.randint(1, 46), total - sum(lengths)))
        samples += random_block(random, lengths, ["answer", "turns", "all"])
    return samples


def weighted_samples() -> list[Sample]:
    random = numpy.random.RandomState(3)
    return random_block(random, [*range(1, 51), 90, 77], ["weights", "weights", "answer"])


def position_samples(second: int) -> list[Sample]:
    """Two documents of one pack; the second has positions of its own."""
    random = numpy.random.RandomState(4)
    samples = [random_sample(random, length, "all") for length in (4, second)]
    samples[1].position_ids = list(range(100, 100 + second))
    return samples


# ---------------------------------------------------------------------------------------------------------------------
# The reference
# ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Result:
    """What the reference computed, as fp64 arrays, whichever precision computed it."""

    losses: dict[str, list[dict]] = field(default_factory=dict)
    gradients: dict[str, numpy.ndarray] = field(default_factory=dict)
    token_loss: dict[str, numpy.ndarray] = field(default_factory=dict)
    eval_loss: dict = field(default_factory=dict)
    eval_token_loss: dict[str, numpy.ndarray] = field(default_factory=dict)
    weights: dict[str, dict[str, numpy.ndarray]] = field(default_factory=dict)


def token_losses(model: LlamaForCausalLM, sample: Sample) -> torch.Tensor:
    """The cross entropy of each token given those before it; the first has none, so 0."""
    tokens = torch.tensor(sample.input_ids)
    positions = None if sample.position_ids is None else torch.tensor(sample.position_ids)[None]
    logits = model(input_ids=tokens[None], position_ids=positions, use_cache=False).logits[0]
    losses = torch.nn.functional.cross_entropy(logits[:-1], tokens[1:], reduction="none")
    return torch.cat([losses.new_zeros(1), losses])


def samples_loss(model, samples: list[Sample], numbers: list[int]) -> tuple[torch.Tensor, dict[str, numpy.ndarray]]:
    """The loss over these samples, and their token losses by sample number."""
    total = sum(sum(samples[number].weights) for number in numbers)
    loss, by_sample = 0.0, {}
    for number in numbers:
        sample = samples[number]
        if sample.trained_tokens == 0:
            by_sample[f"{number:08d}"] = numpy.zeros(len(sample))
            continue
        losses = token_losses(model, sample)
        weights = torch.tensor(sample.weights, dtype=losses.dtype)
        loss = loss + (weights * losses).sum() / total
        by_sample[f"{number:08d}"] = (losses * (weights > 0)).detach().double().numpy()
    return loss, by_sample


def optimizer_for(model, kind: str):
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=SGD["lr"])
    matrices = [parameter for parameter in model.parameters() if parameter.ndim == 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": ADAMW["weight_decay"]},
        {"params": vectors, "weight_decay": 0.0},
    ]
    betas = (ADAMW["beta1"], ADAMW["beta2"])
    return torch.optim.AdamW(groups, lr=ADAMW["lr"], betas=betas, eps=ADAMW["eps"])


def arrays(named_tensors) -> dict[str, numpy.ndarray]:
    return {name: tensor.detach().double().numpy().copy() for name, tensor in named_tensors}


def run_reference(weights: Path, samples: list[Sample], steps: list[list[int]], optimizers: list[str], dtype) -> Result:
    result = Result()
    for kind in optimizers:
        model = LlamaForCausalLM.from_pretrained(weights, dtype=torch.float32, attn_implementation="eager").to(dtype)
        optimizer = optimizer_for(model, kind)
        result.losses[kind] = []
        if not result.eval_loss:
            with torch.no_grad():
                loss, result.eval_token_loss = samples_loss(model, samples, range(len(samples)))
            trained = sum(sample.trained_tokens for sample in samples)
            result.eval_loss = {"loss": loss.item(), "trained_tokens": trained}
        for step, numbers in enumerate(steps, start=1):
            optimizer.zero_grad()
            loss, by_sample = samples_loss(model, samples, numbers)
            loss.backward()
            gradients = arrays((name, parameter.grad) for name, parameter in model.named_parameters())
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), ADAMW["clip"] if kind == "adamw" else torch.inf)
            optimizer.step()
            trained = sum(samples[number].trained_tokens for number in numbers)
            assert kind != "adamw" or norm > ADAMW["clip"]
            entry = {"step": step, "loss": loss.item(), "grad_norm": norm.item(), "trained_tokens": trained}
            result.losses[kind].append(entry)
            if step == 1:
                result.gradients, result.token_loss = gradients, by_sample
        result.weights[kind] = arrays(model.named_parameters())
    return result


def headroom(exact: Result, fp32: Result, start: dict[str, numpy.ndarray]) -> dict[str, float]:
    """The worst error of fp32 PyTorch of each kind, as a fraction of compare_dump's limit."""
    report = compare_dump.Report()
    for kind, entries in exact.losses.items():
        for ours, reference in zip(fp32.losses[kind], entries):
            compare_dump.compare_losses(ours, reference, report)
    compare_dump.compare_losses(fp32.eval_loss, exact.eval_loss, report)
    compare_dump.compare_token_losses(fp32.token_loss, exact.token_loss, report)
    compare_dump.compare_token_losses(fp32.eval_token_loss, exact.eval_token_loss, report)
    compare_dump.compare_gradients(fp32.gradients, exact.gradients, report)
    steps = len(exact.losses["sgd"])
    compare_dump.compare_sgd_weights(fp32.weights["sgd"], exact.weights["sgd"], start, steps, report)
    if "adamw" in exact.weights:
        compare_dump.compare_adamw_weights(fp32.weights["adamw"], exact.weights["adamw"], report)
    assert report.passed, report.text()
    return {kind: float(f"{worst.ratio:.2g}") for kind, worst in report.worst.items()}


# ---------------------------------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------------------------------


def write_json(path: Path, value) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_tensors(path: Path, tensors: dict[str, numpy.ndarray]) -> None:
    save_file({name: numpy.ascontiguousarray(value, numpy.float32) for name, value in sorted(tensors.items())}, path)
    path.chmod(0o644)  # safetensors makes it readable by its owner alone


def make_golden(name: str, data: str, tokens: int, global_batch: int = 1, weights: str = ".", steps: int = STEPS,
                optimizers: tuple[str, ...] = ("sgd", "adamw"), dumps: tuple[str, ...] = ("sgd", "adamw")) -> None:
    """Writes one golden's folder; `data` and `weights` are relative to it, `dumps` are the optimizers whose weights
    are stored."""
    folder = GOLDENS / name
    folder.mkdir(parents=True, exist_ok=True)
    samples = read_samples(folder / data)
    batches = plan_steps(samples, tokens, global_batch)[:steps]
    assert len(batches) == steps, name
    checkpoint = folder / weights
    fp32 = run_reference(checkpoint, samples, batches, optimizers, torch.float32)
    with in_double():
        exact = run_reference(checkpoint, samples, batches, optimizers, torch.float64)

    golden = {
        "weights": weights,
        "data": data,
        "tokens": tokens,
        "packing": "order",
        "global_batch": global_batch,
        "steps": batches,
        "optimizers": {kind: SGD if kind == "sgd" else ADAMW for kind in optimizers},
        "eval": exact.eval_loss,
        "reference": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__},
        "headroom": headroom(exact, fp32, load_file(checkpoint / "model.safetensors")),
    }
    # One line a step keeps the file readable.
    lists = {json.dumps(batch, indent=2).replace("\n", "\n    "): json.dumps(batch) for batch in batches}
    text = json.dumps(golden, indent=2)
    for long, short in lists.items():
        text = text.replace(long, short)
    (folder / "golden.json").write_text(text + "\n")
    write_json(folder / "losses.json", exact.losses)
    write_tensors(folder / "step1.safetensors", exact.gradients)
    write_tensors(folder / "token_loss.safetensors", exact.token_loss)
    write_tensors(folder / "eval_token_loss.safetensors", exact.eval_token_loss)
    for kind in dumps:
        write_tensors(folder / f"{kind}.safetensors", exact.weights[kind])
    figures = "  ".join(f"{kind} {value}" for kind, value in golden["headroom"].items())
    print(f"{name:16s} loss {exact.losses['sgd'][0]['loss']:.6f}  headroom: {figures}", flush=True)


def make_small() -> None:
    write_samples(GOLDENS / "data.jsonl", main_samples())
    write_samples(GOLDENS / "weighted.jsonl", weighted_samples())
    write_samples(GOLDENS / "small-packs.jsonl", small_pack_samples())
    for second in (4, 12):
        write_samples(GOLDENS / f"t-positions-4-{second}" / "data.jsonl", position_samples(second))

    old_keys = {"t-tied": "config.json", "t-llama3-rope": "config-old-keys.json"}
    for seed, (name, overrides) in enumerate(VARIANTS.items(), start=10):
        save_model(make_model(overrides, seed), GOLDENS / name, old_keys.get(name))
        make_golden(name, "../data.jsonl", tokens=2048)
    # adamw's weights are left out where they would only add size: its arithmetic is the same as above.
    make_golden("t-g3", "../small-packs.jsonl", tokens=128, global_batch=3, weights="../t", dumps=("sgd",))
    make_golden("t-weighted", "../weighted.jsonl", tokens=2048, weights="../t", steps=1, optimizers=("sgd",), dumps=())
    for second in (4, 12):
        make_golden(f"t-positions-4-{second}", "data.jsonl", tokens=4 + second, weights="../t", steps=1,
                    optimizers=("sgd",), dumps=())


# ---------------------------------------------------------------------------------------------------------------------
# The real model
# ---------------------------------------------------------------------------------------------------------------------


def mean_loss(samples: list[Sample], losses: dict[str, numpy.ndarray]) -> float:
    pairs = [(losses[f"{number:08d}"], numpy.array(sample.weights)) for number, sample in enumerate(samples)]
    return float(sum((loss * weight).sum() for loss, weight in pairs) / sum(weight.sum() for _, weight in pairs))


def make_real() -> None:
    """Per-token losses of 8 samples, spread evenly over the file, of 20 to 200 tokens."""
    for needed in (REAL_MODEL / "model.safetensors", REAL_DATA):
        if not needed.exists():
            sys.exit(f"goldens.py: error: missing input ({needed.relative_to(ROOT)}); run tools/scripts/demo.sh first")
    found = [sample for sample in read_samples(REAL_DATA) if 20 <= len(sample) <= 200 and sample.trained_tokens >= 5]
    if len(found) < 8:
        sys.exit(f"goldens.py: error: too few samples of 20 to 200 tokens ({REAL_DATA.name}): {len(found)}; 8 needed")
    samples = [found[i * len(found) // 8] for i in range(8)]

    folder = GOLDENS / "smollm2"
    write_samples(folder / "samples.jsonl", samples)
    model = LlamaForCausalLM.from_pretrained(REAL_MODEL, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        _, fp32 = samples_loss(model, samples, range(8))
        with in_double():
            _, exact = samples_loss(model.double(), samples, range(8))
    write_tensors(folder / "token_loss.safetensors", exact)
    worst = max(float(abs(fp32[key] - exact[key]).max()) for key in exact)
    golden = {
        "data": "samples.jsonl",
        "eval": {
            "loss": mean_loss(samples, exact),
            "trained_tokens": sum(sample.trained_tokens for sample in samples),
        },
        # [relative, absolute]. fp32 PyTorch's own mean is off by 9e-6, since it sums 49152 exponentials in fp32.
        "limits": {"loss": [0, 1e-4], "token loss": [0, 1e-4]},
        # A golden of other weights would only mislead: tests compare this first.
        "model_sha256": hashlib.sha256((REAL_MODEL / "model.safetensors").read_bytes()).hexdigest(),
        "reference": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__},
        "worst_fp32_token_error": float(f"{worst:.2g}"),
    }
    write_json(folder / "golden.json", golden)
    print(f"smollm2          loss {golden['eval']['loss']:.6f}  worst token loss error of fp32 PyTorch {worst:.2g}")


def check_final(folder: Path, samples_file: Path) -> None:
    """Opens an exported folder as a user of transformers would, and fails on what transformers only warns about."""
    # Wrong shapes are let through here to be reported below with the rest.
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True, ignore_mismatched_sizes=True
    )
    kinds = ("missing_keys", "unexpected_keys", "mismatched_keys")
    problems = {kind: sorted(map(str, info[kind])) for kind in kinds}
    for kind, keys in problems.items():
        if keys:
            print(f"goldens.py: error: {kind.replace('_', ' ')} ({folder}): {', '.join(keys)}", file=sys.stderr)
    if any(problems.values()):
        sys.exit(1)
    if any((folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json")):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        text = "Hello, world!"
        back = tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"])
        if back.strip() != text:
            sys.exit(f"goldens.py: error: the tokenizer does not give back what it was given ({folder}): {back!r}")
        print(f"tokenizer        {type(tokenizer).__name__}, {len(tokenizer)} tokens")
    samples = read_samples(samples_file)
    largest = max(max(sample.input_ids) for sample in samples)
    if largest >= model.config.vocab_size:
        sys.exit(f"goldens.py: error: token outside the vocabulary ({samples_file}): {largest}; "
                 f"below {model.config.vocab_size} (give this model's own with --samples)")
    with torch.no_grad():
        _, losses = samples_loss(model.eval(), samples, range(len(samples)))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"model            {type(model).__name__}, {parameters} parameters, no missing or unexpected tensors")
    print(f"mean loss        {mean_loss(samples, losses):.6f} on {samples_file.name}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="goldens.sh", description="Makes the goldens with transformers.")
    parser.add_argument("--real", action="store_true", help="only the golden of the demo's model, from build/")
    parser.add_argument("--check-final", metavar="DIR", type=Path,
                        help="only open this exported folder in transformers")
    parser.add_argument("--samples", metavar="FILE", type=Path, default=GOLDENS / "smollm2" / "samples.jsonl",
                        help="samples whose loss --check-final prints (default: the demo model's golden)")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    # One thread: the same bits on every machine with as wide vectors.
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if options.check_final:
        check_final(options.check_final, options.samples)
    elif options.real:
        make_real()
    else:
        make_small()


if __name__ == "__main__":
    main()
