"""What a plan says about memory, and what the process takes."""

import json
import os
import unittest

import numpy

import harness
from harness import GOLDENS, MODEL, SGD, call, flags, fresh, plan, sample, write_data

MIB = 1 << 20


class Memory(unittest.TestCase):
    def need_model(self, name):
        path = MODEL / name
        if path.exists():
            return path
        if os.environ.get("SFT_REQUIRE_MODEL") == "1":
            self.fail(f"{path} is missing; make it with tools/scripts/get_model.py")
        self.skipTest(f"{path} IS MISSING: the real model is not tested; make it with tools/scripts/get_model.py")

    def report(self, file):
        return json.loads(call("sft-plan", "memory", file, "--json").must().out)

    def test_the_plan_of_the_real_model_is_near_the_lower_bound(self):
        self.need_model("config.json")
        for mesh in ("", "cp=2"):
            with self.subTest(mesh=mesh):
                report = self.report(plan(1024, mesh, folder=MODEL))
                reserved, bound = report["reserved"], report["lower_bound"]
                print(f"\n  {mesh or 'one rank'}: {reserved / MIB:.1f} MiB reserved for values of a step, lower bound "
                      f"{bound / MIB:.1f} MiB ({100 * (reserved / bound - 1):.2f} % above)")
                self.assertGreater(bound, 100 * MIB)
                self.assertGreaterEqual(reserved, bound)
                self.assertLessEqual(reserved, 1.03 * bound)
                self.assertEqual(sum(entry["bytes"] for entry in report["peak"]["live"]), bound)

    def test_the_runtime_reserves_what_the_plan_says(self):
        data = write_data([sample(numpy.random.default_rng(0), 50)])
        for mesh in ("", "cp=2", "cp=2,dp=2"):
            with self.subTest(mesh=mesh):
                file = plan(200, mesh)
                result = harness.run(file, data=data, steps=1, output=True, lr=1e-3)
                total = self.report(file)["per_rank"]["total"]
                self.assertEqual(result.metrics("train")[0]["peak_memory_bytes"], total)
                self.assertEqual(json.loads((result.output / "run.json").read_text())["arena_bytes"], total)

    def check_resident(self, folder, tokens, mesh, ranks, **options):
        """VmHWM of the process, which the kernel keeps, just before it ends."""
        data = write_data([sample(numpy.random.default_rng(0), min(tokens, 100), vocabulary=320) for _ in range(4)])
        file = plan(tokens, mesh, folder=folder)
        output = fresh("output")
        options = dict(SGD, data=data, steps=2, weights=folder, lr=1e-3, output=output, quiet=True, threads=2) | options
        call("sft-run", file, *flags(options), timeout=300).must()
        peak = json.loads((output / "run.json").read_text())["host_peak_bytes"]
        bound = ranks * self.report(file)["per_rank"]["total"] + 150 * MIB
        print(f"\n  {folder.name} {mesh or 'one rank'}: VmHWM {peak / MIB:.0f} MiB, at most {bound / MIB:.0f} MiB")
        self.assertLessEqual(peak, bound)

    def test_resident_memory_of_model_t(self):
        self.check_resident(GOLDENS / "t", 2048, "", 1)
        self.check_resident(GOLDENS / "t", 2048, "cp=2", 2)

    def test_resident_memory_does_not_grow_with_the_step(self):
        # The rows of all packs of a step lay in memory at once, each padded to the whole pack.
        random = numpy.random.default_rng(0)
        data, file = write_data([sample(random, 20) for _ in range(64)]), plan(8192)
        peaks = {}
        for batch in (1, 64):
            result = harness.run(file, **dict(SGD, data=data, steps=1, lr=1e-3, packing="none", global_batch=batch, dump=False,
                                              output=True))
            peaks[batch] = json.loads((result.output / "run.json").read_text())["host_peak_bytes"]
        print("\n  VmHWM " + ", ".join(f"{peak / MIB:.1f} MiB with {batch} packs a step" for batch, peak in peaks.items()))
        self.assertLessEqual(peaks[64], peaks[1] + 8 * MIB)

    def test_resident_memory_of_the_real_model(self):
        self.need_model("model.safetensors")
        self.check_resident(MODEL, 128, "", 1)


if __name__ == "__main__":
    unittest.main()
