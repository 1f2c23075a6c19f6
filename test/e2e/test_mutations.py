"""The equality of one rank and a mesh must fail for a plan with one thing wrong, or it would prove nothing."""

import unittest

import numpy

import harness
from harness import SGD, call, fresh, plan, run, sample, write_data

# Edits of sft_edit_plan, and what must differ. A backward fault leaves the loss of a step as it was.
FORWARD = ["swap-slots", "drop-rectangle"]
BACKWARD = ["swap-slots-backward", "drop-rectangle-grad", "drop-gradient-reduction", "maximum-for-sum", "scale-gradients"]


class Mutations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        random = numpy.random.default_rng(11)
        lengths = [45, 3, 50, 17, 1, 11]
        cls.options = dict(SGD, data=write_data([sample(random, length) for length in lengths]), steps=1, lr=0.5, packing="order")
        cls.plan = plan(127, "cp=2", "zigzag")
        cls.reference = run(plan(127), **cls.options)

    def report(self, edit):
        edited = fresh("edited.plan")
        call("sft_edit_plan", self.plan, edited, edit).must()
        result = run(edited, **self.options)
        return harness.compare_dump.compare_dumps(result.step(1), self.reference.step(1), "sgd", harness.GOLDENS / "t")

    def test_without_an_edit_they_are_equal(self):
        report = self.report("nothing")
        self.assertTrue(report.passed, report.text())

    def test_every_fault_is_seen(self):
        print()
        for edit in FORWARD + BACKWARD:
            with self.subTest(edit=edit):
                report = self.report(edit)
                worst = {kind: worst.ratio for kind, worst in report.worst.items()}
                print(f"  {edit:24s}", "  ".join(f"{kind} {ratio:.3g}" for kind, ratio in worst.items()))
                self.assertFalse(report.passed)
                self.assertGreater(worst["gradient"], 100, "far outside the limit, not by rounding")
                self.assertGreater(worst["SGD weights"], 100)
                if edit in FORWARD:
                    self.assertGreater(worst["loss"], 10)
                    self.assertGreater(worst["token loss"], 100)
                else:
                    self.assertLess(worst["loss"], 1)


if __name__ == "__main__":
    unittest.main()
