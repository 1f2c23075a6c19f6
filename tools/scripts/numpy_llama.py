"""Forward pass of a Llama-family decoder in plain numpy, fp32: small enough to read, used as an independent judge.

    config, weights = load("build/models/SmolLM2-135M-Instruct")
    logits = forward(config, weights, input_ids)          # [tokens, vocabulary]
    losses = token_losses(config, weights, input_ids)     # [tokens], entry i: -log p(token i | tokens before i)

One call is one document: causal attention over everything before, positions 0, 1, 2, ... unless given. `config` is the
dictionary of a Hugging Face config.json (LlamaForCausalLM; old keys and those of transformers 5), `weights` maps the
checkpoint's tensor names to arrays. Nothing here is shared with the compiler or the runtime, and speed is no aim.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

Config = Mapping[str, Any]
Weights = Mapping[str, np.ndarray]


def load(folder: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Reads config.json and every *.safetensors file of a checkpoint folder; weights come back as fp32."""
    from safetensors import safe_open

    folder = Path(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights: dict[str, np.ndarray] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():
                weights[name] = file.get_tensor(name).astype(np.float32)
    return config, weights


def rotary_frequencies(config: Config, head_dim: int) -> np.ndarray:
    """Angle per position of each of the head_dim / 2 rotary pairs, fp32 as transformers keeps it."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    frequencies = (1.0 / np.power(np.float32(theta), exponents)).astype(np.float32)

    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return frequencies
    if kind == "linear":
        return (frequencies / np.float32(rope["factor"])).astype(np.float32)
    if kind == "llama3":
        # Long wavelengths are slowed by `factor`, short ones kept, those between blended.
        factor, low, high = rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"]
        context = rope["original_max_position_embeddings"]
        wavelengths = 2 * math.pi / frequencies
        blend = (context / wavelengths - low) / (high - low)
        blended = (1 - blend) * frequencies / factor + blend * frequencies
        slowed = np.where(wavelengths > context / low, frequencies / factor, frequencies)
        between = (wavelengths <= context / low) & (wavelengths >= context / high)
        return np.where(between, blended, slowed).astype(np.float32)
    raise ValueError(f"unknown rope type (config.json): {kind!r}; default, linear or llama3")


def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps)) * weight


def silu(x: np.ndarray) -> np.ndarray:
    # exp of a large positive number may overflow to inf, and x / inf = 0 is the right limit.
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


def rotate(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Rotary embedding in the Hugging Face layout: entry d pairs with entry d + head_dim / 2. x: [tokens, heads, head_dim]."""
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def linear(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    y = x @ weights[name + ".weight"].T
    bias = weights.get(name + ".bias")
    return y if bias is None else y + bias


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Causal attention of one document. q: [tokens, heads, head_dim]; k and v: [tokens, kv_heads, head_dim]."""
    tokens, heads, head_dim = q.shape
    queries_per_kv_head = heads // k.shape[1]
    future = np.triu(np.ones((tokens, tokens), dtype=bool), k=1)
    out = np.empty_like(q)
    for head in range(heads):
        kv_head = head // queries_per_kv_head
        scores = q[:, head] @ k[:, kv_head].T / np.float32(math.sqrt(head_dim))
        scores[future] = -np.inf
        scores -= scores.max(axis=-1, keepdims=True)
        probabilities = np.exp(scores)
        probabilities /= probabilities.sum(axis=-1, keepdims=True)
        out[:, head] = probabilities @ v[:, kv_head]
    return out


def hidden_states(
    config: Config, weights: Weights, input_ids: Sequence[int], positions: Sequence[int] | None = None
) -> np.ndarray:
    """What enters the LM head: [tokens, hidden], after the last norm."""
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    eps = config["rms_norm_eps"]
    if config.get("hidden_act", "silu") != "silu":
        raise ValueError(f"unknown activation (config.json): {config['hidden_act']!r}; silu")

    ids = np.asarray(input_ids, dtype=np.int64)
    tokens = len(ids)
    position = np.arange(tokens) if positions is None else np.asarray(positions)
    angles = position.astype(np.float32)[:, None] * rotary_frequencies(config, head_dim)[None, :]
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]  # the middle axis broadcasts over heads

    x = weights["model.embed_tokens.weight"][ids]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        h = rms_norm(x, weights[prefix + "input_layernorm.weight"], eps)
        q = linear(h, weights, prefix + "self_attn.q_proj").reshape(tokens, heads, head_dim)
        k = linear(h, weights, prefix + "self_attn.k_proj").reshape(tokens, kv_heads, head_dim)
        v = linear(h, weights, prefix + "self_attn.v_proj").reshape(tokens, kv_heads, head_dim)
        a = attention(rotate(q, cos, sin), rotate(k, cos, sin), v).reshape(tokens, heads * head_dim)
        x = x + linear(a, weights, prefix + "self_attn.o_proj")

        h = rms_norm(x, weights[prefix + "post_attention_layernorm.weight"], eps)
        gated = silu(linear(h, weights, prefix + "mlp.gate_proj")) * linear(h, weights, prefix + "mlp.up_proj")
        x = x + linear(gated, weights, prefix + "mlp.down_proj")
    return rms_norm(x, weights["model.norm.weight"], eps)


def head_weight(config: Config, weights: Weights) -> np.ndarray:
    return weights["model.embed_tokens.weight" if config.get("tie_word_embeddings") else "lm_head.weight"]


def forward(
    config: Config, weights: Weights, input_ids: Sequence[int], positions: Sequence[int] | None = None
) -> np.ndarray:
    """Logits [tokens, vocabulary] of one document."""
    return hidden_states(config, weights, input_ids, positions) @ head_weight(config, weights).T


def token_losses(
    config: Config, weights: Weights, input_ids: Sequence[int], positions: Sequence[int] | None = None, chunk: int = 256
) -> np.ndarray:
    """Cross entropy of each token of one document, aligned with `input_ids` as `loss_mask` is: entry i is -log p(token i).

    Entry 0 is NaN: the first token has no prediction. Use `losses[mask]` with a mask whose entry 0 is off.
    Logits are made for `chunk` rows at a time, so a long document does not need all of them in memory.
    """
    ids = np.asarray(input_ids, dtype=np.int64)
    hidden = hidden_states(config, weights, ids, positions)
    head = head_weight(config, weights)
    losses = np.full(len(ids), np.nan, dtype=np.float64)
    for begin in range(0, len(ids) - 1, chunk):
        end = min(begin + chunk, len(ids) - 1)
        logits = (hidden[begin:end] @ head.T).astype(np.float64)
        logits -= logits.max(axis=-1, keepdims=True)
        targets = ids[begin + 1 : end + 1]
        losses[begin + 1 : end + 1] = np.log(np.exp(logits).sum(axis=-1)) - logits[np.arange(end - begin), targets]
    return losses
