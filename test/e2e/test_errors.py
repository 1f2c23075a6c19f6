"""Bad inputs of sft-run: one exact message, the right exit code, within seconds, and nothing written."""

import json
import re
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

    def error(self, message: str, code: int = 1, plan=None, names: dict = {}, words: tuple = (), **options):
        """Runs sft-run with one thing wrong. In the message {name} stands for the path of an option or of `names`, and a
        last "..." for any end."""
        type(self).count += 1
        options = dict(weights=T, data=self.data, steps=1, output=fresh("output"), threads=2, quiet=True) | options
        plan = self.plan if plan is None else plan
        before = self.everything()
        result = call("sft-run", plan, *flags(options), *words, timeout=SECONDS)
        expected = message if re.match(r"\{\w+\}:\d+:\d+: ", message) else "sft-run: error: " + message
        for name, path in (options | {"plan": plan} | names).items():
            expected = expected.replace("{" + name + "}", str(path))
        ours = result.err.rstrip("\n")
        if expected.endswith("..."):
            expected, ours = expected[:-3], ours[:len(expected) - 3]
        with self.subTest(message=message):
            self.assertEqual(ours, expected)
            self.assertEqual(result.code, code)
            self.assertEqual(result.out, "")
            written = [path.name for path, time in self.everything().items() if before.get(path) != time and path != TEMPORARY]
            self.assertEqual(written, [], "nothing may be written")
            self.assertLess(result.seconds, SECONDS)

    @staticmethod
    def everything():
        return {path: path.stat().st_mtime_ns for path in TEMPORARY.rglob("*")}


class Weights(Errors):
    def folder(self, tensors=None, data: bytes | None = None):
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
        self.refused(self.folder(tensors), "weights do not fit the plan ({weights}):\n"
                     "  missing (1): model.layers.1.mlp.up_proj.weight [128, 64]")

    def test_unexpected(self):
        self.refused(self.folder(self.tensors() | {"model.extra": numpy.zeros((3, 2), "f4")}),
                     "weights do not fit the plan ({weights}):\n  unexpected (1): model.extra [3, 2]")

    def test_shape(self):
        self.refused(self.folder(self.tensors() | {"model.norm.weight": numpy.ones(63, "f4")}),
                     "weights do not fit the plan ({weights}):\n"
                     "  mismatched (1): model.norm.weight is f32 [63], expected floating point [64]")

    def test_type(self):
        self.refused(self.folder(self.tensors() | {"model.norm.weight": numpy.ones(64, "i8")}),
                     "weights do not fit the plan ({weights}):\n"
                     "  mismatched (1): model.norm.weight is i64 [64], expected floating point [64]")

    def test_everything_is_listed(self):
        # oxiglade/mlx-rs #304: keys that did not match were ignored, missing ones kept random values.
        tensors = self.tensors()
        tensors["model.layers.0.mlp.up.weight"] = tensors.pop("model.layers.0.mlp.up_proj.weight")
        tensors |= {"model.norm.weight": numpy.ones(63, "f4"), "lm_head.weight": numpy.ones((320, 64), "i4"),
                    "extra": numpy.ones(1, "f4")}
        self.refused(self.folder(tensors), "weights do not fit the plan ({weights}):\n"
                     "  missing (1): model.layers.0.mlp.up_proj.weight [128, 64]\n"
                     "  unexpected (2): extra [1]; model.layers.0.mlp.up.weight [128, 64]\n"
                     "  mismatched (2): model.norm.weight is f32 [63], expected floating point [64]; "
                     "lm_head.weight is i32 [320, 64], expected floating point [320, 64]")

    def test_other_model(self):
        self.error("weights do not fit the plan ({weights}):\n  mismatched (21): model.embed_tokens.weight is f32 [320, 48], "
                   "expected floating point [320, 64]; ...", weights=GOLDENS / "t-heads-6-3")

    def test_tied_with_another_head(self):
        # vllm-project/vllm #51665: the config says tied, the file holds another head, and the head was thrown away.
        tied = GOLDENS / "t-tied"
        tensors = load_file(tied / "model.safetensors")
        head = tensors["model.embed_tokens.weight"].copy()
        same = self.folder(tensors | {"lm_head.weight": head})
        plan = harness.plan(64, folder=tied)
        ours, theirs = (harness.run(plan, weights=weights, data=self.data, steps=1) for weights in (same, tied))
        harness.same_files(self, ours.dump, theirs.dump)
        head[5, 7] += 1
        self.error("weights do not fit the plan ({weights}):\n"
                   "  tied by the configuration but different (1): model.embed_tokens.weight and lm_head.weight",
                   plan=plan, weights=self.folder(tensors | {"lm_head.weight": head}))

    def test_truncated(self):
        data = (T / "model.safetensors").read_bytes()
        for size, message in (
            (len(data) - 1, "tensor beyond the end of the file ({file}, tensor model.norm.weight): bytes 459776 to 460032 of the "
                            "data; the file has 460031 (truncated?)"),
            (len(data) // 2, "tensor beyond the end of the file ({file}, tensor model.layers.0.mlp.gate_proj.weight): bytes "
                             "196864 to 229632 of the data; the file has 228944 (truncated?)"),
            (100, "header length of a safetensors file ({file}): 2136 bytes declared; at least 2 and at most 92 (the rest of the "
                  "file)"),
            (5, "not a safetensors file ({file}): 5 bytes; at least 8"),
            (0, "not a safetensors file ({file}): 0 bytes; at least 8"),
        ):
            self.refused(self.folder(data=data[:size]), message)

    def test_header_length(self):
        # safetensors/safetensors #668: a hostile header length.
        data = (T / "model.safetensors").read_bytes()
        for length in (1 << 40, 1 << 63, 0, len(data) + 1):
            self.refused(self.folder(data=struct.pack("<Q", length) + data[8:]),
                         f"header length of a safetensors file ({{file}}): {length} bytes declared; at least 2 and at most "
                         f"{len(data) - 8} (the rest of the file)")
        self.refused(self.folder(data=struct.pack("<Q", 3) + data[8:]), "header is not valid JSON ({file}, byte 12): ...")

    def test_offsets(self):
        # ml-explore/mlx #3363: offsets were not checked against shape and type.
        for shape, begin, end, message in (
            ([1000, 1000], 0, 4, "shape does not match the bytes ({file}, tensor x): data_offsets 0 to 4 declare 4 bytes; the shape "
                                 "needs 4000000"),
            ([1], 4, 0, "shape does not match the bytes ({file}, tensor x): data_offsets 4 to 0 declare a negative number of bytes; "
                        "the shape needs 4"),
            ([1], -4, 0, "malformed header ({file}, tensor x, data_offsets): found number -4; an entry is "
                         '{"dtype": STRING, "shape": [SIZES], "data_offsets": [BEGIN, END]}'),
            ([1], 4, 8, "tensor beyond the end of the file ({file}, tensor x): bytes 4 to 8 of the data; the file has 4 "
                        "(truncated?)"),
            ([1 << 40, 1 << 40], 0, 4, "shape does not match the bytes ({file}, tensor x): data_offsets 0 to 4 declare 4 bytes; the "
                                       "shape needs more than 64 bits count"),
            ([], 0, 8, "shape does not match the bytes ({file}, tensor x): data_offsets 0 to 8 declare 8 bytes; the shape needs 4"),
        ):
            self.refused(self.header({"x": {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}}, bytes(4)), message)

    def test_ranges(self):
        # antirez/h3.c #48: tensors overlap, or leave bytes that belong to none.
        def entries(*ranges):
            return {name: {"dtype": "F32", "shape": [(end - begin) // 4], "data_offsets": [begin, end]}
                    for name, (begin, end) in zip("ab", ranges)}

        self.refused(self.header(entries((0, 8), (4, 12)), bytes(12)),
                     "tensors overlap ({file}): a ends at byte 8 of the data, b begins at 4")
        self.refused(self.header(entries((0, 4), (8, 12)), bytes(12)),
                     "bytes without a tensor ({file}): 4 to 8 of the data, before b")
        self.refused(self.header(entries((0, 4), (4, 8)), bytes(12)), "bytes after the last tensor ({file}): 8 to 12 of the data")

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
        self.refused(self.folder(data=struct.pack("<Q", 12) + b'{"x": {"dtyp'),
                     "header is not valid JSON ({file}, byte 21): ...")
        self.refused(self.folder(data=struct.pack("<Q", 12) + b'["x", "dtyp"'),
                     'not a safetensors file ({file}): byte 8 is not "{", with which the header begins')
        self.refused(self.header({"x": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}, bytes(4)),
                     "unsupported dtype ({file}, tensor x): F8_E4M3; F64, F32, F16, BF16, I64, I32 or U8")

    def test_shards(self):
        # sgl-project/sglang #32279: the index names a shard that is not on disk; its weights stayed uninitialised.
        tensors = self.tensors()
        names = sorted(tensors)
        shards = {name: f"model-0000{i % 3 + 1}-of-00003.safetensors" for i, name in enumerate(names)}
        for text, message in (
            (json.dumps({"weight_map": shards}), "missing shards ({index}): model-00002-of-00003.safetensors"),
            (json.dumps({"weight_map": {"lm_head.weight": "../model.safetensors"}}),
             'shard outside the folder ({index}, tensor lm_head.weight): "../model.safetensors"; a plain file name'),
            ("{", "index is not valid JSON ({index}): ..."),
            ("{}", 'index without a weight_map ({index}); {"weight_map": {TENSOR: FILE}}'),
        ):
            folder = self.folder()
            for shard in sorted(set(shards.values()))[::2]:
                save_file({name: tensors[name] for name in names if shards[name] == shard}, folder / shard)
            (folder / "model.safetensors.index.json").write_text(text)
            self.error(message, weights=folder, names={"index": folder / "model.safetensors.index.json"})

    def test_no_weights(self):
        self.error("no such folder (weights): {weights}; a Hugging Face folder with model.safetensors or "
                   "model.safetensors.index.json", weights=fresh("nowhere"))
        self.error("no weights in the folder (weights): {weights}; looked for model.safetensors and model.safetensors.index.json",
                   weights=self.folder())


class Data(Errors):
    def lines(self, *lines):
        path = fresh("data.jsonl")
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return path

    def refused(self, message, *lines):
        """The third line is the bad one."""
        self.error("{data}:3:" + message, data=self.lines(GOOD, GOOD, *lines))

    def test_text(self):
        self.refused("33: error: not valid JSON (sample 2): syntax error while parsing object key - invalid string: missing closing "
                     "quote; last read: '\"loss_m'; expected string literal", '{"input_ids": [1, 2, 3], "loss_m', GOOD)
        self.refused("1: error: expected an object (sample 2): found an array", "[1, 2, 3]")
        self.refused("1: error: blank line...", "", GOOD)
        self.refused("44: error: not valid JSON (sample 2): syntax error while parsing value - invalid literal; last read: '1]} x'; "
                     "expected end of input", '{"input_ids": [1, 2], "loss_mask": [0, 1]} x')
        self.refused("33: error: key twice in one line (sample 2): input_ids",
                     '{"input_ids": [1, 2], "input_ids": [1, 2], "loss_mask": [0, 1]}')

    def test_keys(self):
        self.refused("1: error: no input_ids (sample 2); a line needs input_ids and loss_mask or labels", {"loss_mask": [0, 1]})
        self.refused("1: error: no loss_mask and no labels (sample 2); give one of them", {"input_ids": [1, 2]})
        self.refused("1: error: both loss_mask and labels (sample 2); give one of them",
                     {"input_ids": [1, 2], "loss_mask": [0, 1], "labels": [-100, 2]})
        self.refused("1: error: lengths differ (sample 2): 2 input_ids, 1 loss_mask; one entry a token",
                     {"input_ids": [1, 2], "loss_mask": [0]})
        self.refused("1: error: label differs from the token (sample 2, position 1): 3 where input_ids has 2; labels are unshifted, "
                     "-100 means not trained", {"input_ids": [1, 2], "labels": [-100, 3]})

    def test_values(self):
        self.refused("21: error: expected an array of numbers (sample 2, key input_ids): found a string",
                     {"input_ids": [1, "2"], "loss_mask": [0, 1]})
        self.refused("19: error: expected an integer (sample 2, input_ids[1]): 2.5", {"input_ids": [1, 2.5], "loss_mask": [0, 1]})
        self.refused("15: error: expected an array of numbers (sample 2, key input_ids): found a number",
                     {"input_ids": 7, "loss_mask": [0, 1]})
        self.refused("40: error: bad weight (sample 2, loss_mask[1]): -1; weights are finite and at least 0",
                     {"input_ids": [1, 2], "loss_mask": [0, -1]})
        self.refused("40: error: not valid JSON (sample 2): syntax error while parsing value - invalid literal; last read: '0, N'",
                     '{"input_ids": [1, 2], "loss_mask": [0, NaN]}')

    def test_long_numbers(self):
        # A message as long as the number overflowed the stack.
        digits = "1" * 200000
        for number, shown in (("1." + digits, "1." + "1" * 58), ("0." + digits, "0." + "1" * 58), ("-1." + digits, "-1." + "1" * 57)):
            self.refused(f"19: error: expected an integer (sample 2, input_ids[1]): {shown}",
                         f'{{"input_ids": [1, {number}], "loss_mask": [0, 1]}}')
        start = "number overflow parsing '"
        self.refused(f"200018: error: not valid JSON (sample 2): {start}{'1' * (300 - len(start))}",
                     f'{{"input_ids": [1, {digits}], "loss_mask": [0, 1]}}')

    def test_ids_outside_the_vocabulary(self):
        # allenai/open-instruct #1862: the limit was the tokenizer's base size instead of the rows of the embedding.
        for value in (320, -1, -100, 1 << 31):
            self.refused(f"22: error: token id outside the vocabulary (sample 2, position 2): {value}; the embedding has 320 rows, "
                         "so ids are 0 to 319", {"input_ids": [1, 2, value], "loss_mask": [0, 1, 1]})
        harness.run(self.plan, data=self.lines({"input_ids": [319, 319], "loss_mask": [0, 1]}), steps=1)

    def test_positions(self):
        self.refused("79: error: position_ids must increase strictly (sample 2, position 2): 1; at least 2",
                     GOOD | {"position_ids": [0, 1, 1, 2]})
        self.refused("1: error: position outside the model (sample 2): 512; position_ids are below 512",
                     GOOD | {"position_ids": [0, 1, 2, 512]})
        self.refused("73: error: position_ids must increase strictly (sample 2, position 0): -1; at least 0",
                     GOOD | {"position_ids": [-1, 1, 2, 3]})
        self.refused("1: error: lengths differ (sample 2): 4 input_ids, 3 position_ids; one entry a token",
                     GOOD | {"position_ids": [0, 1, 2]})

    def test_too_long(self):
        self.refused("1: error: sample too long (sample 2): 65 tokens; at most 64 (tokens of a pack), or --over-long drop or "
                     "truncate", {"input_ids": [1] * 65, "loss_mask": [1] * 65})

    def test_encodings(self):
        path = fresh("data.jsonl")
        path.write_bytes((json.dumps(GOOD) + "\n").encode("utf-16"))
        self.error("{data}:1:1: error: wrong encoding (byte offset 0): UTF-16 or UTF-32, little endian; write the file as UTF-8",
                   data=path)
        path = fresh("data.jsonl")
        path.write_text(json.dumps(GOOD) + "\n\ufeff" + json.dumps(GOOD) + "\n")
        self.error("{data}:2:1: error: byte order mark of UTF-8 inside the file (byte offset 55); only the start of a file may have "
                   "one", data=path)

    def test_nothing_to_train(self):
        self.error("no sample to train on (--data {data}): 0 of 0 lines, 0 without a trained token, 0 dropped as over-long; mark "
                   "trained tokens in loss_mask or labels", data=self.lines())
        self.error("no sample to train on (--data {data}): 0 of 2 lines, 2 without a trained token, 0 dropped as over-long; mark "
                   "trained tokens in loss_mask or labels",
                   data=self.lines({"input_ids": [1, 2], "loss_mask": [0, 0]}, {"input_ids": [1], "loss_mask": [1]}))

    def test_files(self):
        self.error("cannot open file ({data}): No such file or directory; name a file that can be read", data=fresh("nowhere.jsonl"))
        self.error("not a regular file ({data}); name a file, not a folder or device", data=TEMPORARY)
        bad = self.lines(GOOD, "{")
        message = "syntax error while parsing object key - unexpected end of input; expected string literal"
        self.error("{eval_data}:2:2: error: not valid JSON (sample 1): " + message, eval_data=bad)
        # Samples are numbered over all files.
        self.error("{bad}:2:2: error: not valid JSON (sample 2): " + message, data=[self.data, bad], names={"bad": bad})


class Plans(Errors):
    def plan_file(self, data: bytes):
        path = fresh("model.plan")
        path.write_bytes(data)
        return path

    def edited(self, edit):
        path = fresh("model.plan")
        call("sft_edit_plan", self.plan, path, edit).must()
        return path

    def recompile(self):
        model = harness.imported(T)
        return f"sftc compile {model} -o {self.plan} --tokens 64"

    def test_no_plan(self):
        self.error("cannot read plan ({plan}): No such file or directory; name a file made by sftc compile", plan=fresh("nowhere.plan"))
        self.error("cannot read plan ({plan}): it is a folder; name a plan file", plan=TEMPORARY)
        for plan in (self.plan_file(b""), self.plan_file(b"#!/bin/sh\n" + bytes(100)), T / "model.safetensors"):
            self.error('not a plan file ({plan}): it does not begin with "SFTPLAN"; make one with sftc compile', plan=plan)

    def test_long_paths(self):
        # The message holds the path, and matching the place at its start took a stack frame a character.
        name = "a" * 100000
        self.error("...", plan=name)
        self.error("cannot open file ({data}): File name too long; name a file that can be read", data=name)
        self.error("no such folder (weights): {weights}; a Hugging Face folder with model.safetensors or "
                   "model.safetensors.index.json", weights=name)
        self.error("cannot write into the folder (--output): {output}; choose another folder", output=name)

    def test_truncated(self):
        data = self.plan.read_bytes()
        for size in (10, 63, 64, len(data) // 2, len(data) - 1):
            self.error(f"plan file has the wrong length ({{plan}}): {size} bytes, its header promises "
                       f"{64 if size < 64 else len(data)}; copy it again or re-run the compiler", plan=self.plan_file(data[:size]))
        self.error(f"plan file has the wrong length ({{plan}}): {len(data) + 1} bytes, its header promises {len(data)}; copy it "
                   "again or re-run the compiler", plan=self.plan_file(data + b"\0"))

    def test_damaged(self):
        data = bytearray(self.plan.read_bytes())
        low, high = struct.unpack("<QQ", data[24:40])
        for at in (64, len(data) // 2, len(data) - 1):
            data[at] ^= 4
            self.error(f"plan file is damaged ({{plan}}): its contents do not match the hash {high:016x}{low:016x} in its header; "
                       "copy it again or re-run the compiler", plan=self.plan_file(data))
            data[at] ^= 4

    def test_versions(self):
        # iree-org/iree #12762: program and runtime of different versions.
        data = bytearray(self.plan.read_bytes())
        for major, minor, what in ((1, 1, "is newer than"), (2, 0, "does not fit"), (0, 0, "does not fit")):
            data[8:12] = struct.pack("<HH", major, minor)
            self.error(f"plan version {what} this runtime ({{plan}}): plan version {major}.{minor}, runtime version 1.0; re-run the "
                       f"compiler of this installation: {self.recompile()}", plan=self.plan_file(data))

    def test_other_machines_and_builds(self):
        # XOP is a feature of a few CPUs from 2011 to 2017, none of which has AVX-512.
        with open("/proc/cpuinfo") as cpuinfo:
            if " xop " not in cpuinfo.read():
                self.error("the plan's code needs CPU features that this machine lacks...", plan=self.edited("foreign-cpu"))
        self.error("this build runs plans for the CPU only (plan's target): cpu of kind abacus; recompile with: "
                   f"{self.recompile()} --target cpu", plan=self.edited("foreign-target"))
        # iree-org/iree #21544: the same version, but a kernel has another signature.
        self.error("plan is not valid ({plan}): 1 problem; re-run the compiler\n  kernel signature differs (kernel row_kernel): the "
                   "plan has ...", plan=self.edited("foreign-kernel"))
        self.error("plan is not valid ({plan}): 1 problem; re-run the compiler\n  buffer leaves its arena (...",
                   plan=self.edited("buffer-outside-arena"))


class Options(Errors):
    def usage(self, message, **options):
        self.error(message, code=2, **options)

    def test_contradictions(self):
        self.usage("give the weights to start from: one of --weights DIR and --random-weights SEED", weights=None)
        self.usage("give the weights to start from: one of --weights DIR and --random-weights SEED", random_weights=1)
        self.usage("--steps and --epochs both say how long to train; give one of them", epochs=2)
        self.usage("nothing to do (--steps): 0; give --eval-data FILE to evaluate, or --steps of at least 1", steps=0)
        self.usage("nothing to train on; give --data FILE (or --steps 0 with --eval-data FILE to evaluate only)", data=None)
        self.usage("nowhere to put the result; give --output DIR", output=None)
        self.usage("nothing to evaluate (--eval-every): 2; give --eval-data FILE", eval_every=2)
        self.usage("the least learning rate is above the largest (--min-lr): 0.001; at most --lr 1e-05", lr=1e-5, min_lr=1e-3)
        self.usage("--reference excludes --compare; see sft-run --help", compare=True, reference=True)

    def test_ranges(self):
        for name, value, valid in (
            ("lr", -1, "at least 0"), ("lr", "nan", "at least 0"), ("clip", -1, "at least 0"), ("eps", -1e-08, "at least 0"),
            ("weight_decay", -0.1, "at least 0"), ("min_lr", -1, "at least 0"), ("timeout", -1, "at least 0"),
            ("beta1", 1, "from 0 to below 1"), ("beta2", -0.1, "from 0 to below 1"), ("steps", -1, "at least 0"),
            ("warmup_steps", -1, "at least 0"), ("stop_after", 0, "at least 1"), ("global_batch", 0, "at least 1"),
            ("threads", 0, "at least 1"),
        ):
            flag = "--" + name.replace("_", "-")
            self.usage(f"value out of range ({flag}): {value}; {valid}", **{name: value})
        self.usage("Could not convert: --lr = fast; see sft-run --help", lr="fast")
        self.usage("Could not convert: --steps = 1.5; see sft-run --help", steps=1.5)

    def test_ranges_of_fp32(self):
        # The kernels take scalars in fp32, where these are infinite.
        for name in ("lr", "min_lr", "weight_decay", "eps", "clip", "timeout"):
            for value in (1e39, 1e300, float("inf")):
                flag = "--" + name.replace("_", "-")
                self.usage(f"value out of range ({flag}): {value}; a number that fits fp32", **{name: value})

    def test_eps_of_zero(self):
        # A weight that never had a gradient, as of a token that does not occur, became 0/0. 1e-60 is 0 in fp32.
        for value in (0, 1e-60):
            self.usage(f"value out of range (--eps): {value}; above 0, or a weight without a gradient becomes 0/0", eps=value)
            self.usage(f"value out of range (--eps): {value}; above 0, or a weight without a gradient becomes 0/0", eps=value,
                       optimizer="adamw")
        harness.run(self.plan, data=self.data, steps=1, eps=0, optimizer="sgd")

    def test_names(self):
        for name, value, valid in (
            ("packing", "tight", "ffd, order or none"), ("optimizer", "lion", "adamw or sgd"),
            ("lr_schedule", "random", "constant, linear or cosine"), ("over_long", "ignore", "error, drop or truncate"),
        ):
            flag = "--" + name.replace("_", "-")
            self.usage(f"unknown value ({flag}): {value}; {valid}", **{name: value})
        self.usage("The following arguments were not expected: ...", steps=None, words=("--step", "3"))

    def test_output(self):
        used = fresh("used")
        used.mkdir()
        (used / "metrics.jsonl").write_text("{}\n")
        self.error("the folder holds another run (--output): {output}; choose another folder or move this one away", output=used)
        self.error("cannot write into the folder (--output): {output}; choose another folder", output=self.data / "below-a-file")
        self.error("cannot write into the folder (--output): {output}; choose another folder", output=self.data)


class NotFinite(unittest.TestCase):
    """The last step's weights go through no loss that would tell."""

    def check(self, mesh="", **options):
        options = dict(data=write_data([GOOD] * 4), steps=1, global_batch=4, dump=False, output=True, check=False) | options
        with self.subTest(mesh=mesh, **{name: options[name] for name in ("lr", "steps")}):
            result = harness.run(harness.plan(64, mesh), **options)
            self.assertRegex(result.err, r"\Asft-run: error: a weight is not finite \(after step 1, model\.[\w.]+\): -?(inf|nan); "
                                         r"nothing was exported; lower --lr, [^\n]*\n\Z")
            self.assertEqual(result.code, 1)
            self.assertEqual(result.out, "")
            self.assertEqual(sorted(path.name for path in result.output.iterdir()), ["metrics.jsonl", "run.json"])

    def test_adamw(self):
        for mesh in ("", "cp=2,dp=2"):
            self.check(mesh, lr=3e38)
            self.check(mesh, lr=1e30, weight_decay=1e30)

    def test_sgd(self):
        for mesh in ("", "dp=2"):
            self.check(mesh, **harness.SGD | dict(lr=3e38))

    def test_random_weights(self):
        self.check(weights=None, random_weights=1, lr=1e30, weight_decay=1e30)

    def test_an_early_end(self):
        self.check(lr=1e30, weight_decay=1e30, steps=2, stop_after=1, lr_schedule="constant", warmup_steps=0)


if __name__ == "__main__":
    unittest.main()
