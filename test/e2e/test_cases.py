"""Failures that users of systems like this one reported, each as a test of the right answer; the source stands beside it.

What is compared with is one rank with one document a pack (harness.reference), and for losses the plain numpy forward pass.
"""

import json
import unittest

import numpy

import harness
from harness import GOLDENS, SGD, call, fresh, plan, reference, run, sample, write_data

tally = harness.Tally()
T = GOLDENS / "t"


def tearDownModule():
    tally.print("cases")


def mask(length: int, *trained: int) -> list[int]:
    return [int(i in trained) for i in range(length)]


def variant(**changes):
    """Model T with entries of its config changed."""
    folder = fresh("model")
    folder.mkdir()
    config = json.loads((T / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").symlink_to(T / "model.safetensors")
    return folder


class Cases(unittest.TestCase):
    def setUp(self):
        self.random = numpy.random.default_rng(sum(map(ord, self._testMethodName)))

    def step(self, samples, tokens, mesh="", order=None, folder=T, **options):
        options = dict(SGD, lr=0.5, steps=1, packing="order") | options
        return run(plan(tokens, mesh, order, folder), weights=folder, data=write_data(samples), **options)

    def check(self, samples, tokens, meshes, folder=T, **options):
        """One step on meshes against one rank with one document a pack, and that against numpy."""
        ref = reference(samples, folder)
        self.assertAlmostEqual(ref.loss()["loss"], harness.numpy_loss(samples, folder), delta=1e-5)
        for mesh, order in meshes:
            with self.subTest(mesh=mesh, order=order):
                tally.same_runs(self.step(samples, tokens, mesh, order, folder, **options), ref, start=folder)
        return ref

    # -----------------------------------------------------------------------------------------------------------------
    # The loss and its denominator
    # -----------------------------------------------------------------------------------------------------------------

    def test_trained_tokens_are_counted_once(self):
        # verl-project/verl #5983: the sum ran over dp only, though every cp rank held but its slice.
        samples = [sample(self.random, 32, mask(32, *range(2, 9))), sample(self.random, 32, mask(32, *range(18, 30)))]
        ref = self.check(samples, 32, [("cp=2,dp=2", "contiguous")], packing="none", global_batch=2)
        self.assertEqual(ref.loss()["trained_tokens"], 19)
        result = self.step(samples, 32, "cp=2,dp=2", "contiguous", packing="none", global_batch=2, output=True)
        self.assertEqual(result.metrics("train")[0]["trained_tokens"], 19)
        self.assertEqual(result.loss()["trained_tokens"], 19)

    def test_evaluation_loss_on_meshes(self):
        # huggingface/transformers #48167: evaluation was not made for cp, and its loss came out times cp.
        samples = [sample(self.random, int(length), int(length) // 2) for length in self.random.integers(2, 50, 10)]
        data = write_data(samples)
        ref = run(plan(50), steps=0, eval_data=data, packing="none")
        self.assertAlmostEqual(ref.loss("eval")["loss"], harness.numpy_loss(samples), delta=1e-5)
        for mesh in ("", "cp=2", "cp=4", "dp=2", "cp=2,dp=2"):
            with self.subTest(mesh=mesh):
                tally.same(run(plan(64, mesh), steps=0, eval_data=data).dump / "eval", ref.dump / "eval")

    def test_accumulation_does_not_weight_short_samples(self):
        # huggingface/transformers #24725, huggingface/trl #2175, huggingface/transformers #34373: mean of means.
        samples = [sample(self.random, 20, 10), sample(self.random, 120, 100)]
        ref = self.check(samples, 140, [("", None)], global_batch=1)
        for order in (samples, samples[::-1]):
            tally.same_gradients(self.step(order, 120, packing="order", global_batch=2), ref)

    def test_ranks_with_few_or_no_trained_tokens(self):
        # PrimeIntellect-ai/prime-rl #1957 and #1960: a mean on each rank, then the average over ranks.
        self.check([sample(self.random, 16, 5), sample(self.random, 16, 1)], 16, [("dp=2", None)], packing="none", global_batch=2)
        self.check([sample(self.random, 32, 16)], 32, [("cp=2", "contiguous")])
        self.check([sample(self.random, 32, mask(32, 3, 4, 9, 30))], 32, [("cp=4", "contiguous"), ("cp=4", "zigzag")])

    def test_a_prompt_longer_than_the_limit(self):
        # NVIDIA-NeMo/Speech #8025, NVIDIA/NeMo-Aligner #57: nothing is left to train after truncation, and 0/0 is NaN.
        samples = [sample(self.random, 40, 20), sample(self.random, 80, 10), sample(self.random, 64, 9), sample(self.random, 30, 4)]
        rest = [entry for entry in samples if len(entry["input_ids"]) <= 64]
        ref = reference(rest)
        for policy, key, value in (("drop", "dropped", [1]), ("truncate", "untrained", 1)):
            with self.subTest(policy=policy):
                result = self.step(samples, 64, over_long=policy, packing="none", global_batch=4, output=True)
                tally.same_gradients(result, ref)
                self.assertEqual(result.event("data")[key], value)
                self.assertEqual(result.samples(1), [0, 2, 3])
        failed = self.step(samples, 64, over_long="error", packing="none", global_batch=4, check=False)
        self.assertEqual(failed.code, 1)
        self.assertIn(":2:1: error: sample too long (sample 1): 80 tokens; at most 64", failed.err)

    def test_logged_loss_does_not_depend_on_accumulation(self):
        # NVIDIA-NeMo/labs-molt #56, NovaSky-AI/SkyRL #1893: a share of the loss was logged as the loss.
        samples = [sample(self.random, int(length)) for length in self.random.integers(5, 33, 8)]
        data = write_data(samples)
        for tokens, mesh, packing in ((300, "", "order"), (32, "", "none"), (32, "dp=4", "none"), (64, "dp=2", "ffd")):
            with self.subTest(tokens=tokens, mesh=mesh):
                result = run(plan(tokens, mesh), data=data, eval_data=data, packing=packing, global_batch=8, steps=1, lr=1e-3,
                             output=True)
                loss = result.metrics("train")[0]["loss"]
                self.assertAlmostEqual(loss, harness.numpy_loss(samples), delta=1e-5)
                self.assertAlmostEqual(result.metrics("eval")[0]["eval_loss"], loss, delta=1e-6 * loss)

    def test_evaluation_is_sum_over_sum(self):
        # NVIDIA/Megatron-LM #7207: mean of means, and NaN where no token counts.
        samples = [sample(self.random, 101, 100), sample(self.random, 50, 1), sample(self.random, 50, 0)]
        for mesh in ("", "dp=2", "cp=2,dp=2"):
            with self.subTest(mesh=mesh):
                data, empty = write_data(samples), write_data([sample(self.random, 9, 0), sample(self.random, 1, [1])])
                result = run(plan(101, mesh), steps=0, eval_data=data, packing="none", output=True)
                line, = result.metrics("eval")
                self.assertAlmostEqual(line["eval_loss"], harness.numpy_loss(samples), delta=1e-5)
                self.assertEqual(line["eval_tokens"], 101)
                line, = run(plan(101, mesh), steps=0, eval_data=empty, packing="none", output=True).metrics("eval")
                self.assertIsNone(line["eval_loss"])
                self.assertEqual(line["eval_tokens"], 0)

    # -----------------------------------------------------------------------------------------------------------------
    # Cuts, shifts and positions
    # -----------------------------------------------------------------------------------------------------------------

    def test_no_target_is_lost_at_a_cut(self):
        # huggingface/transformers #36607: labels were shifted after the cut.
        samples = [sample(self.random, 8, [1] * 8)]
        ref = self.check(samples, 8, [(f"cp={cp}", "contiguous") for cp in (2, 4, 8)] + [("cp=2", "zigzag"), ("cp=4", "zigzag")])
        self.assertEqual(ref.loss()["trained_tokens"], 7)

    def test_no_target_across_documents(self):
        # NVIDIA-BioNeMo/bionemo-recipes #1449: the last token of a document learned the first token of the next.
        samples = [sample(self.random, 3, [1, 1, 1]), sample(self.random, 3, [1, 1, 1])]
        ref = self.check(samples, 6, [("", None), ("cp=2", "zigzag"), ("cp=2", "contiguous")])
        self.assertEqual(ref.loss()["trained_tokens"], 4)
        for losses in harness.compare_dump.load_file(ref.step(1) / "token_loss.safetensors").values():
            self.assertEqual(losses[0], 0)
            self.assertTrue((losses[1:] > 0).all())

    def test_packing_keeps_the_shift(self):
        # NVIDIA/Megatron-LM #5682: the packed path forgot the shift of the labels.
        samples = [sample(self.random, int(length)) for length in (12, 7, 20, 9, 3, 15)]
        self.check(samples, 20, [("", None)], packing="none", global_batch=6)
        self.check(samples, 40, [("", None)], global_batch=2)
        self.check(samples, 66, [("", None)], global_batch=1)

    def test_positions_with_gaps(self):
        # NVIDIA/Megatron-LM #5243: documents of a packed row took the positions of the first one.
        samples = [sample(self.random, 4), sample(self.random, 12) | {"position_ids": [100, 101, 105, 111, 200, 210, 211, 300, 301, 302,
                                                                                       400, 511]}]
        self.check(samples, 16, [("cp=2", "zigzag"), ("cp=4", "contiguous")])
        plain = reference([{**entry, "position_ids": list(range(len(entry["input_ids"])))} for entry in samples])
        self.assertNotAlmostEqual(plain.loss()["loss"], reference(samples).loss()["loss"], delta=1e-3)

    def test_the_last_real_token_counts(self):
        # NVIDIA/TransformerEngine #1930: a real length of 7 became 6 on two ranks.
        samples = [sample(self.random, 4), sample(self.random, 3)]
        other = json.loads(json.dumps(samples))
        other[1]["input_ids"][-1] = (other[1]["input_ids"][-1] + 1) % 320
        losses = []
        for entries in (samples, other):
            ref = self.check(entries, 7, [("cp=2", "zigzag"), ("cp=2", "contiguous"), ("cp=4", "zigzag")])
            losses.append(harness.compare_dump.load_file(ref.step(1) / "token_loss.safetensors"))
        numpy.testing.assert_array_equal(losses[0]["00000000"], losses[1]["00000000"])
        numpy.testing.assert_array_equal(losses[0]["00000001"][:2], losses[1]["00000001"][:2])
        self.assertNotEqual(losses[0]["00000001"][2], losses[1]["00000001"][2])

    def test_boundaries_of_a_long_document(self):
        # PrimeIntellect-ai/prime-rl #2392: boundaries of the second rank began at its first position instead of 0.
        folder = variant(max_position_embeddings=4096)
        meshes = [("cp=2", "contiguous"), ("cp=2", "zigzag"), ("cp=8", "zigzag")]
        self.check([sample(self.random, 2048)], 2048, meshes, folder)
        self.check([sample(self.random, 1500, 700), sample(self.random, 548, 300)], 2048, meshes, folder)

    def test_ranks_that_hold_padding_only(self):
        # SandAI-org/MagiAttention #9: a rank with nothing to compute made no output.
        # pytorch/pytorch #103749: a query row that sees nothing gave NaN.
        self.check([sample(self.random, 9)], 32, [("cp=4", "contiguous"), ("cp=4", "zigzag"), ("cp=8", "contiguous"), ("dp=2", None),
                                                  ("cp=2,dp=4", None)])
        self.check([sample(self.random, 2)], 64, [("", None), ("cp=8", "zigzag")])

    # -----------------------------------------------------------------------------------------------------------------
    # Models and plans
    # -----------------------------------------------------------------------------------------------------------------

    def test_rope_factor_reaches_the_kernels(self):
        # NVIDIA/Megatron-LM #6305, Blaizzy/mlx-vlm #1710: the factor was read, checked, and not passed on.
        samples = [sample(self.random, 300, 200)]
        losses = []
        for kind in ("linear", "llama3"):
            for factor in (32.0, 8.0):
                rope = {"rope_type": kind, "rope_theta": 10000.0, "factor": factor}
                if kind == "llama3":
                    rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
                folder = variant(rope_parameters=rope)
                losses.append(self.check(samples, 300, [("cp=2", "zigzag")], folder).loss()["loss"])
        for i, loss in enumerate(losses):
            for other in losses[:i]:
                self.assertGreater(abs(loss - other), 1e-3)
        folder = variant(rope_parameters={"rope_type": "spiral", "rope_theta": 10000.0})
        failed = call("sftc", "import", folder, "-o", fresh("model.mlir"))
        self.assertEqual(failed.code, 1)
        self.assertIn("rope_type", failed.err)
        self.assertIn("spiral", failed.err)
        self.assertIn("llama3", failed.err)

    def test_a_limit_that_the_mesh_does_not_divide(self):
        # NVIDIA-NeMo/RL #3380: every row failed, late, and another setting was blamed.
        output = fresh("model.plan")
        failed = call("sftc", "compile", harness.imported(T), "-o", output, "--mesh", "cp=4", "--token-order", "zigzag", "--tokens",
                      "130", "--pad-rule", "none")
        self.assertEqual(failed.code, 1)
        for word in ("130", "128", "136", "cp"):
            self.assertIn(word, failed.err)
        self.assertFalse(output.exists())

    def test_the_config_of_what_was_trained(self):
        # The source was bf16, the result is fp32: transformers would have rounded it on loading.
        samples = write_data([sample(self.random, 20)])
        for keys in (("torch_dtype",), ("dtype",), ("torch_dtype", "dtype")):
            with self.subTest(keys=keys):
                folder = variant(**dict.fromkeys(keys, "bfloat16"))
                if "dtype" not in keys:
                    config = json.loads((folder / "config.json").read_text())
                    del config["dtype"]
                    (folder / "config.json").write_text(json.dumps(config))
                source = json.loads((folder / "config.json").read_text())
                result = run(plan(20, folder=folder), weights=folder, data=samples, steps=1, dump=False, output=True)
                config = json.loads((result.output / "final" / "config.json").read_text())
                self.assertEqual(list(config.items()), list((source | dict.fromkeys(keys, "float32")).items()))
                for tensor in harness.compare_dump.load_file(result.output / "final" / "model.safetensors").values():
                    self.assertEqual(tensor.dtype, numpy.float32)
        # What needs no change is not written anew.
        result = run(plan(20), data=samples, steps=1, dump=False, output=True)
        self.assertEqual((result.output / "final" / "config.json").read_bytes(), (T / "config.json").read_bytes())

    # -----------------------------------------------------------------------------------------------------------------
    # Samples
    # -----------------------------------------------------------------------------------------------------------------

    def test_over_long_samples(self):
        # NVIDIA-NeMo/RL #169, OpenPipe/ART #665, axolotl-ai-cloud/axolotl #2211: dropped or truncated without telling.
        samples = [sample(self.random, 30 + 3 * i) for i in range(7)]
        for place, over in ((1, 1), (4, 1000), (9, 100000)):
            samples.insert(place, sample(self.random, 64 + over))
        options = dict(packing="none", global_batch=10, output=True)
        cut = [{key: value[:64] for key, value in entry.items()} for entry in samples]
        truncated = self.step(samples, 64, over_long="truncate", **options)
        tally.same_runs(truncated, reference(cut))
        self.assertEqual(truncated.event("data")["truncated"], [1, 4, 9])
        dropped = self.step(samples, 64, over_long="drop", **options)
        self.assertEqual(dropped.event("data")["dropped"], [1, 4, 9])
        self.assertEqual(dropped.samples(1), [0, 2, 3, 5, 6, 7, 8])
        rest = [entry for entry in samples if len(entry["input_ids"]) <= 64]
        tally.same_gradients(dropped, reference(rest))
        failed = self.step(samples, 64, check=False, **options)
        self.assertEqual(failed.code, 1)
        self.assertIn(":2:1: error: sample too long (sample 1): 65 tokens; at most 64", failed.err)

    def test_every_sample_once_an_epoch(self):
        # huggingface/trl #482: only batches that reached the full length were kept.
        samples = [sample(self.random, int(length)) for length in self.random.integers(2, 31, 100)]
        result = self.step(samples, 64, steps=None, epochs=1, packing="none", global_batch=4, lr=0)
        steps = sorted(result.dump.iterdir())
        self.assertEqual(len(steps), 25)
        self.assertEqual(sorted(number for step in range(1, 26) for number in result.samples(step)), list(range(100)))

    def test_steps_of_an_epoch_do_not_depend_on_cp(self):
        # axolotl-ai-cloud/axolotl #3444: the world size was taken for dp.
        samples = [sample(self.random, int(length)) for length in self.random.integers(2, 17, 64)]
        result = self.step(samples, 16, "cp=2", steps=None, epochs=1, packing="none", global_batch=4, lr=0, output=True)
        train = result.metrics("train")
        self.assertEqual(len(train), 16)
        self.assertEqual(sorted(number for step in range(1, 17) for number in result.samples(step)), list(range(64)))
        self.assertEqual({line["epoch"] for line in train}, {1})
        self.assertEqual([line["samples"] for line in train], [4] * 16)

    def test_three_epochs_end(self):
        # verl-project/verl #1158: a hang at the turn of an epoch. The last step of an epoch has what is left.
        samples = [sample(self.random, 10) for _ in range(10)]
        result = self.step(samples, 10, "cp=2,dp=2", steps=None, epochs=3, packing="none", global_batch=4, lr=1e-3, output=True)
        train = result.metrics("train")
        self.assertEqual([line["samples"] for line in train], [4, 4, 2] * 3)
        self.assertEqual([line["epoch"] for line in train], [1] * 3 + [2] * 3 + [3] * 3)
        for epoch in range(3):
            numbers = [number for step in range(3 * epoch + 1, 3 * epoch + 4) for number in result.samples(step)]
            self.assertEqual(sorted(numbers), list(range(10)))

    def test_keys_that_mean_nothing(self):
        # A misspelt or forgotten key was passed over without a word.
        samples = [sample(self.random, 20, 9) | {"attention_mask": [1] * 20} for _ in range(3)]
        extra = [samples[0] | {"id": 7, "positions": [1, 2]}, samples[1] | {"id": None}, samples[2] | {"id": "c", "source": {"a": []}}]
        warning = "warning: keys that mean nothing here ({}): {}; known are input_ids, loss_mask, labels and position_ids"
        options = dict(output=True, quiet=None, global_batch=3)
        result = self.step(extra, 60, eval_data=write_data(extra[1:2]), **options)
        lines = [line for line in result.err.splitlines() if "warning" in line]
        self.assertEqual(lines, [warning.format("data", "id (3 lines), positions (1 lines), source (1 lines)"),
                                 warning.format("eval_data", "id (1 lines)")])
        self.assertEqual(result.event("data")["ignored_keys"], {"id": 3, "positions": 1, "source": 1})
        self.assertEqual(result.event("eval_data")["ignored_keys"], {"id": 1})
        plain = self.step(samples, 60, **options)
        self.assertNotIn("warning", plain.err)
        self.assertEqual(plain.event("data")["ignored_keys"], {})
        harness.same_files(self, result.step(1), plain.step(1))

    def test_samples_without_an_answer(self):
        # sapientinc/HRM-Text #11: a batch in which every answer is empty crashed the backward.
        empty = [sample(self.random, length, 0) for length in (5, 9, 1)]
        normal = [sample(self.random, 20, 9), sample(self.random, 12, 3)]
        mixed = [empty[0], normal[0], empty[1], normal[1], empty[2]]
        result = self.step(mixed, 64, global_batch=1, output=True)
        tally.same_gradients(result, reference(normal))
        self.assertEqual(result.event("data")["untrained"], 3)
        failed = self.step(empty, 64, check=False)
        self.assertEqual(failed.code, 1)
        self.assertIn("0 of 3 lines, 3 without a trained token", failed.err)

    # -----------------------------------------------------------------------------------------------------------------
    # Ranks that must agree
    # -----------------------------------------------------------------------------------------------------------------

    def test_evaluation_with_uneven_numbers_of_packs(self):
        # PrimeIntellect-ai/prime-rl #2515, pytorch/torchtitan #1618: one rank's loop ended first, and the others waited.
        for packs in (1, 3, 8):
            samples = [sample(self.random, 20, 7) for _ in range(packs)]
            for mesh in ("dp=2", "cp=2,dp=2", "dp=4"):
                with self.subTest(packs=packs, mesh=mesh):
                    result = run(plan(20, mesh), steps=0, eval_data=write_data(samples), packing="none")
                    self.assertAlmostEqual(result.loss("eval")["loss"], harness.numpy_loss(samples), delta=1e-5)
                    self.assertEqual(result.loss("eval")["trained_tokens"], 7 * packs)

    def test_uneven_numbers_of_packs_in_a_step(self):
        # verl-project/verl #6176: 5 micro-batches on one rank and 1 on the other, and a hang in the backward.
        samples = [sample(self.random, 95) for _ in range(5)] + [sample(self.random, 20) for _ in range(5)]
        self.check(samples, 100, [("dp=2", None), ("dp=4", None), ("cp=2,dp=2", "zigzag")], packing="ffd", global_batch=6)
        self.check(samples[:5], 100, [("dp=2", None)], packing="ffd", global_batch=5)

    def test_a_timeout_of_centuries(self):
        # Its nanoseconds do not fit 64 bits: the first rank to wait gave up at once.
        data = write_data([sample(self.random, 16) for _ in range(2)])
        for mesh in ("cp=2", "dp=2"):
            for timeout in ("1e10", "1e30"):
                with self.subTest(mesh=mesh, timeout=timeout):
                    options = dict(SGD, weights=T, data=data, steps=2, lr=0.5, output=fresh("output"), threads=2, quiet=True)
                    call("sft-run", plan(16, mesh), *harness.flags(options), "--timeout", timeout).must()

    def test_learning_rates_do_not_depend_on_the_mesh(self):
        # jzhang38/EasyContext #21, huggingface/accelerate #662: the schedule was stepped once a process.
        samples = [sample(self.random, 8) for _ in range(8)]
        curves = []
        for mesh in ("", "cp=2,dp=2", "cp=4,dp=2", "dp=8"):
            result = run(plan(8, mesh), data=write_data(samples), steps=100, warmup_steps=10, lr=1e-3, output=True, dump=False,
                         packing="none", global_batch=8)
            curves.append([line["lr"] for line in result.metrics("train")])
            self.assertEqual(curves[-1], curves[0])
        self.assertEqual(len(curves[0]), 100)
        self.assertEqual(max(curves[0]), 1e-3)
        self.assertEqual(curves[0][9], 1e-3)
        self.assertTrue(all(a < b for a, b in zip(curves[0][:9], curves[0][1:10])))
        self.assertTrue(all(a > b for a, b in zip(curves[0][9:], curves[0][10:])))


if __name__ == "__main__":
    unittest.main()
