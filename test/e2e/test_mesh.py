"""One rank against every mesh, order, packing and padding: the same losses, gradients and weights; and two runs, same bits."""

import unittest

import numpy

import harness
from harness import GOLDENS, LONG, SGD, plan, run, sample, write_data

tally = harness.Tally()

CONTEXT = [(f"cp={cp}", order) for cp in (2, 4, 8) for order in ("zigzag", "contiguous")]
DATA = [("dp=2", None), ("cp=2,dp=2", "zigzag"), ("cp=2,dp=2", "contiguous"), ("dp=3", None)]


def tearDownModule():
    tally.print("meshes")


def packs_of_every_length(packs: int, seed: int) -> list[dict]:
    """Documents that fill packs of 1,275 tokens, each with all lengths from 1 to 50; answers are trained, or everything."""
    random = numpy.random.default_rng(seed)
    samples = []
    for _ in range(packs):
        for length in random.permutation(numpy.arange(1, 51)).tolist():
            trained = length - 1 if length < 3 or random.random() < 0.3 else int(random.integers(1, length))
            samples.append(sample(random, length, trained))
    return samples


class Meshes(unittest.TestCase):
    def compare(self, meshes, tokens, data, max_documents=None, folder=GOLDENS / "t", **options):
        """Runs of the same data on one rank and on meshes."""
        options = dict(data=data, packing="order", weights=folder) | SGD | options
        reference = run(plan(tokens, folder=folder, max_documents=max_documents), **options)
        for mesh, order in meshes:
            with self.subTest(mesh=mesh, order=order, tokens=tokens):
                result = run(plan(tokens, mesh, order, folder, max_documents=max_documents), **options)
                tally.same_runs(result, reference, start=folder)
                result.discard()
        return reference

    def test_packs_of_all_lengths_from_1_to_50(self):
        data = write_data(packs_of_every_length(9, 1))
        for global_batch, steps in ((1, 3), (3, 3)):
            self.compare(CONTEXT + DATA, 1275, data, 64, global_batch=global_batch, steps=steps, lr=0.5)

    def test_heads_6_3_and_biases(self):
        data = write_data(packs_of_every_length(2, 2))
        for name in ("t-heads-6-3", "t-bias-4-4", "t-tied"):
            self.compare([("cp=2", "zigzag"), ("cp=4", "contiguous"), ("cp=2,dp=2", "zigzag")], 1275, data, 64, GOLDENS / name,
                         global_batch=2, steps=1, lr=0.5)

    def test_one_document_of_each_length(self):
        random = numpy.random.default_rng(3)
        for longest in (16, 50):
            samples = [sample(random, length) for length in range(1, longest + 1)]
            data = write_data(samples)
            # A document of one token has no target, so it does not make a step. A rate of 0 keeps the steps apart.
            options = dict(packing="none", lr=0, global_batch=1, epochs=1)
            reference = self.compare(CONTEXT, longest, data, **options)
            numbers = sorted(reference.samples(step)[0] for step in range(1, longest))
            self.assertEqual(numbers, list(range(1, longest)), "each length once")
            evaluation = run(plan(longest), steps=0, eval_data=data, packing="none")
            for mesh, order in CONTEXT:
                with self.subTest(mesh=mesh, order=order, evaluation=longest):
                    result = run(plan(longest, mesh, order), steps=0, eval_data=data, packing="none")
                    tally.same(result.dump / "eval", evaluation.dump / "eval")

    def test_packs_that_one_document_fills(self):
        # Padding differs with the length here: the plan is made for just these tokens.
        random = numpy.random.default_rng(4)
        for length in range(2, 51) if LONG else (2, 3, 7, 13, 50):
            data = write_data([sample(random, length)])
            self.compare(CONTEXT if LONG else CONTEXT[:4], length, data, steps=1, lr=0.5)

    def test_random_documents_crossing_the_cuts(self):
        random = numpy.random.default_rng(5)
        for tokens in (31, 64, 97, 128, 255, 333) if LONG else (97, 128):
            samples = []
            for _ in range(12):
                left = tokens
                while left:
                    length = min(left, int(random.integers(1, 1 + tokens // int(random.integers(1, 8)))))
                    samples.append(sample(random, length, int(random.integers(0, length))))
                    left -= length
            self.compare(CONTEXT + DATA, tokens, write_data(samples), tokens, steps=4, global_batch=3, lr=0.5)

    def test_eight_ranks_dealt_in_all_ways(self):
        # NVIDIA/Megatron-LM #906: gradients were multiplied by cp, and the divisor was of another group.
        random = numpy.random.default_rng(6)
        data = write_data([sample(random, 32) for _ in range(8)])
        meshes = [("dp=8", None), ("cp=2,dp=4", None), ("cp=4,dp=2", None), ("cp=8", "zigzag"), ("cp=8", "contiguous")]
        options = dict(SGD, data=data, steps=1, lr=1, global_batch=8, packing="none")
        reference = run(plan(32), **options)
        gradients = harness.compare_dump.load_file(reference.step(1) / "gradients.safetensors")
        for mesh, order in meshes:
            with self.subTest(mesh=mesh, order=order):
                result = run(plan(32, mesh, order), **options)
                tally.same_runs(result, reference)
                ours = harness.compare_dump.load_file(result.step(1) / "gradients.safetensors")
                for name, gradient in gradients.items():
                    ratio = float((ours[name] * gradient).sum(dtype="f8") / (gradient * gradient).sum(dtype="f8"))
                    self.assertAlmostEqual(ratio, 1, delta=1e-5, msg=name)
        self.compare(meshes, 32, data, steps=2, lr=0.5, global_batch=4)


class SameNumbers(unittest.TestCase):
    """What must not change a number."""

    @classmethod
    def setUpClass(cls):
        random = numpy.random.default_rng(7)
        cls.samples = [sample(random, length, int(random.integers(1, length))) for length in random.integers(2, 51, 24).tolist()]
        cls.data = write_data(cls.samples)
        cls.step = dict(SGD, data=cls.data, steps=1, lr=0.5, global_batch=24)
        cls.reference = harness.reference(cls.samples)

    def test_reference_against_numpy(self):
        self.assertAlmostEqual(self.reference.loss()["loss"], harness.numpy_loss(self.samples), delta=6e-6)

    def test_packings(self):
        for packing in ("ffd", "order", "none"):
            for mesh, order in (("", None), ("cp=2", "zigzag"), ("cp=4", "contiguous"), ("cp=2,dp=2", None)):
                for tokens in (50, 64, 700):
                    with self.subTest(packing=packing, mesh=mesh, tokens=tokens):
                        result = run(plan(tokens, mesh, order), packing=packing, **self.step)
                        tally.same_runs(result, self.reference)
                        result.discard()

    def test_order_of_the_samples(self):
        for seed in (0, 1, 2):
            result = run(plan(128), packing="ffd", seed=seed, **self.step)
            tally.same_runs(result, self.reference)

    def test_padding_rules(self):
        for mesh, order in (("", None), ("cp=2", "zigzag"), ("cp=4", "contiguous")):
            for rule, tokens in (("derived", 64), ("none", 64), ("nemo", 64), ("derived", 65), ("nemo", 65)):
                with self.subTest(mesh=mesh, rule=rule, tokens=tokens):
                    result = run(plan(tokens, mesh, order, pad_rule=rule), packing="ffd", **self.step)
                    tally.same_runs(result, self.reference)

    def test_plain_kernels(self):
        for mesh, order in (("", None), ("cp=2", "zigzag"), ("cp=2,dp=2", "contiguous")):
            with self.subTest(mesh=mesh):
                plain = run(plan(128, mesh, order), packing="ffd", reference=True, **self.step)
                tally.same_runs(plain, self.reference)
                fast = run(plan(128, mesh, order), packing="ffd", **self.step)
                tally.same_runs(fast, plain)

    def test_compare_passes(self):
        for name in ("t", "t-bias-4-4", "t-heads-6-3"):
            for mesh, order in (("", None), ("cp=2", "zigzag"), ("cp=4", "contiguous")):
                with self.subTest(model=name, mesh=mesh):
                    folder = GOLDENS / name
                    run(plan(128, mesh, order, folder), weights=folder, data=self.data, steps=2, compare=True, lr=1e-3)


class SameBits(unittest.TestCase):
    """AdamW for three steps with an evaluation: every dumped byte."""

    @classmethod
    def setUpClass(cls):
        cls.data = write_data(packs_of_every_length(4, 8))

    def check(self, mesh, order, first, second):
        options = dict(data=self.data, eval_data=self.data, steps=3, global_batch=2, lr=1e-3)
        ours, theirs = (run(plan(1275, mesh, order, max_documents=64), output=True, **options, **changes)
                        for changes in (first, second))
        harness.same_files(self, ours.dump, theirs.dump)
        harness.same_files(self, ours.output / "final", theirs.output / "final")
        volatile = {"step_time", "tokens_per_second", "model_tflops"}
        for kind in ("train", "eval"):
            lines = [[{key: value for key, value in line.items() if key not in volatile} for line in result.metrics(kind)]
                     for result in (ours, theirs)]
            self.assertTrue(lines[0])
            self.assertEqual(*lines)

    def test_two_runs(self):
        for mesh, order in (("", None), ("cp=2", "zigzag"), ("cp=4", "contiguous"), ("cp=2,dp=2", "zigzag")):
            with self.subTest(mesh=mesh):
                self.check(mesh, order, {}, {})

    def test_threads(self):
        for mesh, order in (("", None), ("cp=2", "zigzag")):
            with self.subTest(mesh=mesh):
                self.check(mesh, order, {"threads": 1}, {"threads": 2})
                self.check(mesh, order, {"threads": 2}, {"threads": 7})


if __name__ == "__main__":
    unittest.main()
