"""Bad inputs of sft-run: one exact message, the right exit code, within seconds, and nothing written."""

import json
import shutil
import struct
import unittest

import numpy
from safetensors.numpy import load_file, save_file

import harness
from harness import GOLDENS, TEMPORARY, call, flags, fresh, write_data

T = GOLDENS / "t"
SECONDS = 20  # with room for a busy machine; each takes well under a second
GOOD = {"input_ids": [1, 2, 3, 4], "loss_mask": [0, 1, 1, 1]}


class Errors(unittest.TestCase):
    maxDiff = None
    count = 0

    @classmethod
    def setUpClass(cls):
        cls.plan = harness.plan(64)
        cls.data = write_data([GOOD])

    @classmethod
    def tearDownClass(cls):
        print(f"\n{cls.__name__}: {cls.count} bad inputs")

    def error(self, message: str, code: int = 1, plan=None, prefix: str = "sft-run: error: ", names: dict = {}, words: list = (), **options):
        """Runs sft-run with one thing wrong. In the message {name} stands for the path of an option or of `names`."""
        type(self).count += 1
        output = fresh("output")
        options = dict(weights=T, data=self.data, steps=1, output=output, threads=2, quiet=True) | options
        plan = self.plan if plan is None else plan
        before = self.everything()
        result = call("sft-run", plan, *flags(options), *words, timeout=SECONDS)
        paths = {key: value for key, value in options.items() if isinstance(value, type(T))} | {"plan": plan} | names
        expected = message
        for name, path in paths.items():
            expected = expected.replace("{" + name + "}", str(path))
        if not message.startswith("{data}:"):
            expected = prefix + expected
        with self.subTest(message=message):
            self.assertEqual(result.err.rstrip("\n"), expected)
            self.assertEqual(result.code, code)
            self.assertEqual(result.out, "")
            self.assertEqual(self.everything(), before, "nothing may be written")
            self.assertLess(result.seconds, SECONDS)

    @staticmethod
    def everything():
        return {path: path.stat().st_mtime_ns for path in TEMPORARY.rglob("*")}


class Weights(Errors):
    def folder(self, tensors=None, data: bytes = None):
        folder = fresh("weights")
        folder.mkdir()
        shutil.copy(T / "config.json", folder)
        if tensors is not None:
            save_file(tensors, folder / "model.safetensors")
        if data is not None:
            (folder / "model.safetensors").write_bytes(data)
        return folder

    def tensors(self):
        return load_file(T / "model.safetensors")

    def header(self, entries: dict, data: bytes = b""):
        text = json.dumps(entries).encode()
        return self.folder(data=struct.pack("<Q", len(text)) + text + data)

    def refused(self, folder, message):
        self.error(message, weights=folder, names={"file": folder / "model.safetensors"})

    def test_missing(self):
        tensors = self.tensors()
        del tensors["model.layers.1.mlp.up_proj.weight"]
        self.refused(self.folder(tensors), "?")

    def test_unexpected(self):
        self.refused(self.folder(self.tensors() | {"model.extra": numpy.zeros((3, 2), "f4")}), "?")

    def test_shape(self):
        self.refused(self.folder(self.tensors() | {"model.norm.weight": numpy.ones(63, "f4")}), "?")

    def test_type(self):
        self.refused(self.folder(self.tensors() | {"model.norm.weight": numpy.ones(64, "i8")}), "?")

    def test_everything_is_listed(self):
        # oxiglade/mlx-rs #304: keys that did not match were ignored, missing ones kept random values.
        tensors = self.tensors()
        tensors["model.layers.0.mlp.up.weight"] = tensors.pop("model.layers.0.mlp.up_proj.weight")
        tensors |= {"model.norm.weight": numpy.ones(63, "f4"), "lm_head.weight": numpy.ones((320, 64), "i4"), "extra": numpy.ones(1, "f4")}
        self.refused(self.folder(tensors), "?")

    def test_other_model(self):
        self.error("?", weights=GOLDENS / "t-heads-6-3")

    def test_tied_with_another_head(self):
        # vllm-project/vllm #51665: the config says tied, the file holds another head, and the head was thrown away.
        tied = GOLDENS / "t-tied"
        tensors = load_file(tied / "model.safetensors")
        head = tensors["model.embed_tokens.weight"].copy()
        same = self.folder(tensors | {"lm_head.weight": head})
        plan = harness.plan(64, folder=tied)
        harness.run(plan, weights=same, data=self.data, steps=1)
        head[5, 7] += 1
        other = self.folder(tensors | {"lm_head.weight": head})
        self.error("?", plan=plan, weights=other)

    def test_truncated(self):
        data = (T / "model.safetensors").read_bytes()
        for size in (len(data) - 1, len(data) // 2, 100, 5, 0):
            self.refused(self.folder(data=data[:size]), "?")

    def test_header_length(self):
        # safetensors/safetensors #668: a hostile header length.
        data = (T / "model.safetensors").read_bytes()
        for length in (1 << 40, 1 << 63, 0, 3, len(data) + 1):
            self.refused(self.folder(data=struct.pack("<Q", length) + data[8:]), "?")

    def test_offsets(self):
        # ml-explore/mlx #3363: offsets were not checked against shape and type.
        for shape, begin, end in (([1000, 1000], 0, 4), ([1], 4, 0), ([1], -4, 0), ([1], 4, 8), ([1 << 40, 1 << 40], 0, 4), ([], 0, 8)):
            self.refused(self.header({"x": {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}}, bytes(4)), "?")

    def test_ranges(self):
        # antirez/h3.c #48: tensors overlap, or leave bytes that belong to none.
        def entries(*ranges):
            return {name: {"dtype": "F32", "shape": [(end - begin) // 4], "data_offsets": [begin, end]}
                    for name, (begin, end) in zip("ab", ranges)}

        self.refused(self.header(entries((0, 8), (4, 12)), bytes(12)), "?")
        self.refused(self.header(entries((0, 4), (8, 12)), bytes(12)), "?")
        self.refused(self.header(entries((0, 4), (4, 8)), bytes(12)), "?")

    def test_an_unordered_file_loads(self):
        tensors = self.tensors()
        names = sorted(tensors, reverse=True)
        offset, entries = 0, {}
        for name in names:
            size = tensors[name].nbytes
            entries[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [offset, offset + size]}
            offset += size
        folder = self.header(dict(sorted(entries.items())), b"".join(tensors[name].tobytes() for name in names))
        ours, theirs = (harness.run(self.plan, weights=weights, data=self.data, steps=1) for weights in (folder, T))
        harness.same_files(self, ours.dump, theirs.dump)

    def test_header_text(self):
        self.refused(self.folder(data=struct.pack("<Q", 12) + b'{"x": {"dtyp'), "?")
        self.refused(self.folder(data=struct.pack("<Q", 12) + b'["x", "dtyp"'), "?")
        self.refused(self.header({"x": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}, bytes(4)), "?")

    def test_shards(self):
        # sgl-project/sglang #32279: the index names a shard that is not on disk; its weights stayed uninitialised.
        def index(text):
            folder = self.folder()
            tensors = self.tensors()
            names = sorted(tensors)
            for part in (1, 3):
                save_file({name: tensors[name] for name in names[part - 1::3]}, folder / f"model-0000{part}-of-00003.safetensors")
            if text is None:
                text = json.dumps({"weight_map": {name: f"model-0000{i % 3 + 1}-of-00003.safetensors" for i, name in enumerate(names)}})
            (folder / "model.safetensors.index.json").write_text(text)
            return folder

        for text in (None, json.dumps({"weight_map": {"lm_head.weight": "../model.safetensors"}}), "{", "{}"):
            folder = index(text)
            self.error("?", weights=folder, names={"index": folder / "model.safetensors.index.json"})

    def test_no_weights(self):
        self.error("?", weights=fresh("nowhere"))
        self.error("?", weights=self.folder())


class Data(Errors):
    def lines(self, *lines):
        path = fresh("data.jsonl")
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return path

    def refused(self, message, *lines):
        self.error(message, data=self.lines(GOOD, GOOD, *lines))

    def test_text(self):
        self.refused("?", '{"input_ids": [1, 2, 3], "loss_m', GOOD)
        self.refused("?", "[1, 2, 3]")
        self.refused("?", "")
        self.refused("?", '{"input_ids": [1, 2], "loss_mask": [0, 1]} x')
        self.refused("?", '{"input_ids": [1, 2], "input_ids": [1, 2], "loss_mask": [0, 1]}')

    def test_keys(self):
        self.refused("?", {"loss_mask": [0, 1]})
        self.refused("?", {"input_ids": [1, 2]})
        self.refused("?", {"input_ids": [1, 2], "loss_mask": [0, 1], "labels": [-100, 2]})
        self.refused("?", {"input_ids": [1, 2], "loss_mask": [0]})
        self.refused("?", {"input_ids": [1, 2], "labels": [-100, 3]})

    def test_values(self):
        self.refused("?", {"input_ids": [1, "2"], "loss_mask": [0, 1]})
        self.refused("?", {"input_ids": [1, 2.5], "loss_mask": [0, 1]})
        self.refused("?", {"input_ids": 7, "loss_mask": [0, 1]})
        self.refused("?", {"input_ids": [1, 2], "loss_mask": [0, -1]})
        self.refused("?", '{"input_ids": [1, 2], "loss_mask": [0, NaN]}')

    def test_ids_outside_the_vocabulary(self):
        # allenai/open-instruct #1862: the limit was the tokenizer's base size instead of the rows of the embedding.
        for value in (320, -1, -100, 1 << 31):
            self.refused("?", {"input_ids": [1, 2, value], "loss_mask": [0, 1, 1]})
        harness.run(self.plan, data=self.lines({"input_ids": [319, 319], "loss_mask": [0, 1]}), steps=1)

    def test_positions(self):
        self.refused("?", GOOD | {"position_ids": [0, 1, 1, 2]})
        self.refused("?", GOOD | {"position_ids": [0, 1, 2, 512]})
        self.refused("?", GOOD | {"position_ids": [-1, 1, 2, 3]})
        self.refused("?", GOOD | {"position_ids": [0, 1, 2]})

    def test_too_long(self):
        long = {"input_ids": [1] * 65, "loss_mask": [1] * 65}
        self.refused("?", long)

    def test_encodings(self):
        path = fresh("data.jsonl")
        path.write_text(json.dumps(GOOD) + "\n", encoding="utf-16")
        self.error("?", data=path)
        path = fresh("data.jsonl")
        path.write_text(json.dumps(GOOD) + "\n\ufeff" + json.dumps(GOOD) + "\n")
        self.error("?", data=path)

    def test_nothing_to_train(self):
        self.error("?", data=self.lines())
        self.error("?", data=self.lines({"input_ids": [1, 2], "loss_mask": [0, 0]}, {"input_ids": [1], "loss_mask": [1]}))

    def test_files(self):
        self.error("?", data=fresh("nowhere.jsonl"))
        self.error("?", data=TEMPORARY)
        bad = self.lines(GOOD, "{")
        self.error("?", eval_data=bad)
        self.error("?", data=[self.data, bad], names={"bad": bad})


class Plans(Errors):
    def plan_file(self, data: bytes):
        path = fresh("model.plan")
        path.write_bytes(data)
        return path

    def edited(self, edit):
        path = fresh("model.plan")
        call("sft_edit_plan", self.plan, path, edit).must()
        return path

    def test_no_plan(self):
        self.error("?", plan=fresh("nowhere.plan"))
        self.error("?", plan=TEMPORARY)
        self.error("?", plan=self.plan_file(b""))
        self.error("?", plan=self.plan_file(b"#!/bin/sh\n" + bytes(100)))
        self.error("?", plan=T / "model.safetensors")

    def test_truncated(self):
        data = self.plan.read_bytes()
        for size in (10, 63, 64, len(data) // 2, len(data) - 1):
            self.error("?", plan=self.plan_file(data[:size]))
        self.error("?", plan=self.plan_file(data + b"\0"))

    def test_damaged(self):
        data = bytearray(self.plan.read_bytes())
        for at in (64, len(data) // 2, len(data) - 1):
            data[at] ^= 4
            self.error("?", plan=self.plan_file(data))
            data[at] ^= 4

    def test_versions(self):
        # iree-org/iree #12762: program and runtime of different versions.
        data = bytearray(self.plan.read_bytes())
        for major, minor in ((1, 1), (2, 0), (0, 0)):
            data[8:12] = struct.pack("<HH", major, minor)
            self.error("?", plan=self.plan_file(data))

    def test_other_machines_and_builds(self):
        self.error("?", plan=self.edited("foreign-cpu"))
        self.error("?", plan=self.edited("foreign-target"))
        # iree-org/iree #21544: the same version, but a kernel has another signature.
        self.error("?", plan=self.edited("foreign-kernel"))
        self.error("?", plan=self.edited("buffer-outside-arena"))


class Options(Errors):
    def test_contradictions(self):
        def usage(message, **options):
            self.error(message, code=2, **options)

        usage("?", weights=None)
        usage("?", random_weights=1)
        usage("?", epochs=2)
        usage("?", steps=0)
        usage("?", data=None)
        usage("?", output=None)
        usage("?", eval_every=2)
        usage("?", lr=1e-5, min_lr=1e-3)
        usage("?", compare=True, reference=True)

    def test_ranges(self):
        def usage(message, **options):
            self.error(message, code=2, **options)

        usage("?", lr=-1)
        usage("?", lr="nan")
        usage("?", lr="inf")
        usage("?", lr="fast")
        usage("?", beta1=1)
        usage("?", beta2=-0.1)
        usage("?", clip=-1)
        usage("?", eps=-1e-8)
        usage("?", weight_decay=-0.1)
        usage("?", steps=-1)
        usage("?", steps=1.5)
        usage("?", global_batch=0)
        usage("?", threads=0)
        usage("?", packing="tight")
        usage("?", optimizer="lion")
        usage("?", lr_schedule="random")
        usage("?", over_long="ignore")
        usage("?", steps=None, words=["--step", "3"])

    def test_output(self):
        used = fresh("used")
        used.mkdir()
        (used / "metrics.jsonl").write_text("{}\n")
        self.error("?", output=used)
        self.error("?", output=self.data / "below-a-file")
        self.error("?", output=self.data)


if __name__ == "__main__":
    unittest.main()
