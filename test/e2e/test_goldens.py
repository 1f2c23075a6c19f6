"""sft-run against what transformers' own LlamaForCausalLM computes: loss, gradients, and weights after three steps."""

import hashlib
import json
import os
import shutil
import unittest

import harness
from harness import GOLDENS, MODEL, run

tally = harness.Tally()


def tearDownModule():
    tally.print("goldens")


def describe(name):
    golden = GOLDENS / name
    description = json.loads((golden / "golden.json").read_text())
    return golden, description, (golden / description["weights"]).resolve()


def arguments(golden, description):
    return dict(data=golden / description["data"], packing=description["packing"], global_batch=description["global_batch"])


class Goldens(unittest.TestCase):
    SGD_ONLY = {"t-weighted", "t-positions-4-4", "t-positions-4-12"}  # made without AdamW
    NAMES = sorted(path.parent.name for path in GOLDENS.glob("*/losses.json"))

    def train(self, name, optimizer, mesh="", order=None, folder=None):
        golden, description, weights = describe(name)
        losses = json.loads((golden / "losses.json").read_text())
        if optimizer == "adamw" and name in self.SGD_ONLY:
            return
        chosen = dict(description["optimizers"][optimizer])
        chosen["clip"] = chosen["clip"] or 0
        steps = len(losses[optimizer])
        plan = harness.plan(description["tokens"], mesh, order, folder=folder or weights)
        result = run(plan, weights=weights, steps=steps, optimizer=optimizer, lr_schedule="constant", warmup_steps=0,
                     **chosen, **arguments(golden, description))
        for step in range(1, steps + 1):
            with self.subTest(golden=name, optimizer=optimizer, mesh=mesh, order=order, step=step):
                tally.golden(result.step(step), golden, optimizer)
        result.discard()

    def test_all_variants_are_here(self):
        expected = {"t", "t-tied", "t-heads-6-3", "t-bias-4-4", "t-llama3-rope", "t-g3", "t-weighted", "t-positions-4-4",
                    "t-positions-4-12"}
        self.assertLessEqual(expected, set(self.NAMES))

    def test_sgd(self):
        for name in self.NAMES:
            self.train(name, "sgd")

    def test_adamw(self):
        for name in self.NAMES:
            self.train(name, "adamw")

    def test_context_parallel(self):
        # t-positions-*: NVIDIA/Megatron-LM #5243, documents of a packed row took the positions of the first one.
        for name in self.NAMES:
            for mesh, order in (("cp=2", "zigzag"), ("cp=4", "contiguous")):
                self.train(name, "sgd", mesh, order)
            self.train(name, "adamw", "cp=2", "zigzag")

    def test_evaluation(self):
        for name in self.NAMES:
            golden, description, weights = describe(name)
            for mesh in ("", "cp=2", "dp=2"):
                with self.subTest(golden=name, mesh=mesh):
                    plan = harness.plan(description["tokens"], mesh, folder=weights)
                    result = run(plan, weights=weights, steps=0, eval_data=golden / description["data"], packing="order")
                    tally.golden(result.dump / "eval", golden)

    def test_config_keys_of_before_transformers_5(self):
        old = harness.fresh("old-keys")
        old.mkdir()
        shutil.copy(GOLDENS / "t-llama3-rope" / "config-old-keys.json", old / "config.json")
        self.train("t-llama3-rope", "sgd", folder=old)


class RealModel(unittest.TestCase):
    def test_token_losses(self):
        golden = GOLDENS / "smollm2"
        weights = MODEL / "model.safetensors"
        if not weights.exists():
            if os.environ.get("SFT_REQUIRE_MODEL") == "1":
                self.fail(f"{weights} is missing; make it with tools/scripts/get_model.py")
            self.skipTest(f"{weights} IS MISSING: the real model is not tested; make it with tools/scripts/get_model.py")
        sha = json.loads((golden / "golden.json").read_text())["model_sha256"]
        with open(weights, "rb") as file:
            self.assertEqual(hashlib.file_digest(file, "sha256").hexdigest(), sha, "not the golden's weights")
        for mesh in ("", "cp=2"):
            with self.subTest(mesh=mesh):
                plan = harness.plan(512, mesh, folder=MODEL)
                result = run(plan, weights=MODEL, steps=0, eval_data=golden / "samples.jsonl", packing="order", timeout=300)
                tally.golden(result.dump / "eval", golden)


if __name__ == "__main__":
    unittest.main()
