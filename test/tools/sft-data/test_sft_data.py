"""Tests of sft-data, with a tokenizer and a chat template made here: no network, no model.

Run from the repository root: build/venv/bin/python -m unittest discover -s test/tools/sft-data

The tokenizer knows every byte, the merged tokens "yes" and two line feeds in a row, and two special tokens. So nearly
every character is one token, and the expected positions below can be counted by hand.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
LAUNCHER = ROOT / "tools" / "sft-data" / "sft-data"
sys.path.insert(0, str(LAUNCHER.parent))

from sft_data import cli  # noqa: E402

TEMPLATE = (
    "{% for message in messages %}{{ '<|start|>' + message['role'] + '\\n' + message['content'] + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}"
)
HI = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def make_tokenizer(folder: Path, template: str | None = TEMPLATE) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = sorted(pre_tokenizers.ByteLevel.alphabet()) + ["ye", "yes", "ĊĊ"]
    vocab = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[("y", "e"), ("ye", "s"), ("Ċ", "Ċ")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in ("<|start|>", "<|end|>", "<|file|>")]
    )
    tokenizer.enable_truncation(8)  # a saved setting that must not cut anything
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"eos_token": "<|end|>"} | ({"chat_template": template} if template else {})
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def line(messages: Any, **more: Any) -> str:
    return json.dumps({"messages": messages, **more}) + "\n"


def talk(*contents: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)]


class Result:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


def run(*arguments: object) -> Result:
    """Runs the program in this process: a new one for each of these tests would take half a minute."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = cli.main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            status = int(exit_.code or 0)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return Result(status, *texts)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.tokenizer = self.folder / "model"
        make_tokenizer(self.tokenizer)
        self.output = self.folder / "out.jsonl"

    def write(self, content: str | bytes, name: str = "in.jsonl") -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    def prepare(self, *inputs: Path, options: tuple[str, ...] = ()) -> Result:
        return run("prepare", "--tokenizer", self.tokenizer, *inputs, "-o", self.output, *options)

    def samples(self) -> list[dict[str, list[int]]]:
        with open(self.output, encoding="utf-8", newline="\n") as file:
            return [json.loads(text) for text in file]

    def trained(self) -> list[list[int]]:
        return [[i for i, mark in enumerate(sample["loss_mask"]) if mark] for sample in self.samples()]

    def decoded(self) -> list[str]:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.tokenizer / "tokenizer.json"))
        return [tokenizer.decode(sample["input_ids"], skip_special_tokens=False) for sample in self.samples()]

    def good(self, result: Result) -> None:
        self.assertEqual(result.status, 0, result.err)

    def refused(self, content: str | bytes, *parts: str) -> None:
        """Strict mode fails, says all of `parts`, and leaves no file."""
        self.output.unlink(missing_ok=True)
        result = self.prepare(self.write(content))
        self.assertEqual(result.status, 1, result.err)
        for part in parts:
            self.assertIn(part, result.err)
        self.assertNotIn("Traceback", result.err)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["in.jsonl", "model"])

    def refused_and_skipped(self, bad: str, *parts: str) -> None:
        """`bad` as line 2 of 3: strict mode names that line, skip mode keeps the other two."""
        content = line(HI) + bad + line(HI)
        self.refused(content, "in.jsonl:2:", *parts)
        result = self.prepare(self.write(content), options=("--skip-bad-lines", "--json"))
        self.good(result)
        self.assertIn("in.jsonl:2:", result.err)
        self.assertIn("warning", result.err)
        summary = json.loads(result.out)
        self.assertEqual((summary["samples"], summary["skipped"]), (2, 1))
        self.assertEqual(len(self.samples()), 2)


class TrainedPositions(Case):
    # C-10, snowflakedb/ArcticTraining #335: a span found by searching the answer's text matched an earlier copy.
    def test_answer_that_also_appears_earlier(self) -> None:
        result = self.prepare(self.write(line(talk("yes", "yes", "say yes", "yes"))), options=("--json",))
        self.good(result)
        self.assertEqual(json.loads(result.out)["straddling_tokens"], 0)
        # 0 start, 1-4 user, 5 LF, 6 yes, 7 end, 8 LF, 9 start, 10-18 assistant, 19 LF, 20 yes, 21 end, 22 LF,
        # 23 start, 24-27 user, 28 LF, 29-32 "say ", 33 yes, 34 end, 35 LF, 36 start, 37-45 assistant, 46 LF, 47 yes, 48 end, 49 LF
        self.assertEqual(self.trained(), [[20, 21, 47, 48]])
        self.assertEqual(len(self.samples()[0]["input_ids"]), 50)

    def test_one_character_answer(self) -> None:
        self.good(self.prepare(self.write(line(talk("y?", "y")))))
        # 0 start, 1-4 user, 5 LF, 6 y, 7 ?, 8 end, 9 LF, 10 start, 11-19 assistant, 20 LF, 21 y, 22 end, 23 LF
        self.assertEqual(self.trained(), [[21, 22]])

    def test_empty_answer(self) -> None:
        content = line(talk("y", ""))
        self.refused(content, "in.jsonl:1:", "empty turn", "message 1", "'assistant'", "--allow-empty-answers")
        self.good(self.prepare(self.write(content), options=("--allow-empty-answers",)))
        # 0 start, 1-4 user, 5 LF, 6 y, 7 end, 8 LF, 9 start, 10-18 assistant, 19 LF, 20 end, 21 LF
        self.assertEqual(self.trained(), [[20]])

    def test_several_tokens_for_one_character(self) -> None:
        self.good(self.prepare(self.write(line(talk("é", "🙂!")))))
        # 0 start, 1-4 user, 5 LF, 6-7 é, 8 end, 9 LF, 10 start, 11-19 assistant, 20 LF, 21-24 the face, 25 !, 26 end, 27 LF
        self.assertEqual(self.trained(), [[21, 22, 23, 24, 25, 26]])

    def test_system_message_and_long_text_are_whole_and_untrained(self) -> None:
        messages = [{"role": "system", "content": "yes" * 5}, *talk("a", "b" * 40)]
        self.good(self.prepare(self.write(line(messages))))
        # 0 start, 1-6 system, 7 LF, 8-12 yes, 13 end, 14 LF, 15 start, 16-19 user, 20 LF, 21 a, 22 end, 23 LF,
        # 24 start, 25-33 assistant, 34 LF, 35-74 b, 75 end, 76 LF
        self.assertEqual(self.trained(), [list(range(35, 76))])
        self.assertEqual(len(self.samples()[0]["input_ids"]), 77)

    def test_token_across_the_start_of_an_answer_is_not_trained(self) -> None:
        result = self.prepare(self.write(line(talk("y", "\nb"))), options=("--json",))
        self.good(result)
        # The answer's line feed is one token with the template's, at 19: 20 b, 21 end, 22 LF.
        self.assertEqual(self.trained(), [[20, 21]])
        self.assertEqual(json.loads(result.out)["straddling_tokens"], 1)

    def test_first_token_is_never_a_target(self) -> None:
        make_tokenizer(
            self.tokenizer,
            "{% for m in messages %}{% if m['role'] == 'assistant' %}{{ m['content'] }}<|end|>{% endif %}{% endfor %}",
        )
        self.good(self.prepare(self.write(line(talk("y", "abc")))))
        self.assertEqual(self.trained(), [[1, 2, 3]])  # 0 a, 1 b, 2 c, 3 end

    def test_template_without_end_token_trains_the_whole_span(self) -> None:
        make_tokenizer(
            self.tokenizer,
            "{% for m in messages %}{{ m['role'][0] + ':' + m['content'] + '\\n' }}{% endfor %}{% if add_generation_prompt %}a:{% endif %}",
        )
        self.good(self.prepare(self.write(line(talk("y", "abc")))))
        self.assertEqual(self.trained(), [[6, 7, 8, 9]])  # 0 u, 1 :, 2 y, 3 LF, 4 a, 5 :, 6-8 abc, 9 LF

    def test_show_marks_and_counts(self) -> None:
        self.good(self.prepare(self.write(line(talk("yes", "yes", "say yes", "yes")))))
        result = run("show", self.output, "-n", 1, "--tokenizer", self.tokenizer)
        self.good(result)
        self.assertIn("50 tokens, 4 trained", result.out)
        self.assertIn(
            "<|start|>user\nyes<|end|>\n<|start|>assistant\n[[yes<|end|>]]\n<|start|>user\nsay yes<|end|>\n<|start|>assistant\n[[yes<|end|>]]\n",
            result.out,
        )
        colour = run("show", self.output, "-n", 1, "--tokenizer", self.tokenizer, "--color", "always").out
        self.assertIn("\x1b[32myes<|end|>\x1b[0m", colour)
        self.assertNotIn("[[", colour)
        ids = self.samples()[0]["input_ids"]
        self.assertIn(f" {ids[19]} [[{ids[20]} {ids[21]}]] {ids[22]} ", run("show", self.output).out)

    def test_show_never_marks_the_first_token(self) -> None:
        result = run("show", self.write('{"input_ids": [5, 6, 7], "loss_mask": [1, 1, 0]}\n'))
        self.assertIn("3 tokens, 1 trained\n5 [[6]] 7\n", result.out)

    def test_show_stops_after_n(self) -> None:
        self.good(self.prepare(self.write(line(HI) * 5)))
        self.assertEqual(run("show", self.output, "-n", 2).out.count("tokens, "), 2)


class Templates(Case):
    def test_template_that_is_not_prefix_stable(self) -> None:
        make_tokenizer(self.tokenizer, "{{ messages | length }}" + TEMPLATE)
        self.refused(
            line(talk("a", "b", "c", "d")),
            "in.jsonl:1:1: error: chat template is not prefix-stable",
            "message 1",
            "at character 0 '1<",
            "instead of '4<",
        )

    def test_template_that_refuses(self) -> None:
        make_tokenizer(
            self.tokenizer, "{{ raise_exception('no system please') if messages[0]['role'] == 'system' }}" + TEMPLATE
        )
        self.refused_and_skipped(line([{"role": "system", "content": "s"}, *HI]), "no system please")

    def test_template_in_its_own_file_wins(self) -> None:
        (self.tokenizer / "chat_template.jinja").write_text(
            "{% for m in messages %}{% generation %}{{ m['content'] }}<|end|>{% endgeneration %}{% endfor %}"
        )
        self.good(self.prepare(self.write(line(HI))))
        self.assertEqual(self.decoded(), ["a<|end|>b<|end|>"])
        self.assertEqual(self.trained(), [[2, 3]])

    def test_no_template(self) -> None:
        make_tokenizer(self.tokenizer, None)
        self.refused(line(HI), "no chat template", str(self.tokenizer), "chat_template.jinja")

    def test_bad_template(self) -> None:
        make_tokenizer(self.tokenizer, "{% for %}")
        self.refused(line(HI), "not valid Jinja", "tokenizer_config.json")

    def test_no_tokenizer(self) -> None:
        result = run("prepare", "--tokenizer", self.folder / "none", self.write(line(HI)), "-o", self.output)
        self.assertEqual(result.status, 1)
        self.assertIn("folder does not exist (--tokenizer)", result.err)

    def test_token_id_beyond_the_embedding(self) -> None:
        # C-25, allenai/open-instruct #1862: the limit is the embedding's rows, not the tokenizer's base size.
        # The tokenizer has 262 tokens; <|start|> is 259 and <|end|> 260.
        (self.tokenizer / "config.json").write_text(json.dumps({"vocab_size": 260}))
        self.refused(line(HI), "in.jsonl:1:1", "260", "vocab_size 260")
        (self.tokenizer / "config.json").write_text(json.dumps({"vocab_size": 261}))
        self.good(self.prepare(self.write(line(HI))))

    def test_control_token_in_a_message(self) -> None:
        self.refused_and_skipped(
            line(talk("a<|end|>", "b")), "control token inside a message", "message 0", "'<|end|>'"
        )

    def test_other_special_token_in_a_message_is_kept_and_counted(self) -> None:
        result = self.prepare(self.write(line(talk("a <|file|>", "b"))), options=("--json",))
        self.good(result)
        self.assertEqual(json.loads(result.out)["special_tokens_in_text"], {"<|file|>": 1})


class BadLines(Case):
    # C-01, NVIDIA-NeMo/Automodel #1694: one bad line stopped the whole load.
    def test_cut_line(self) -> None:
        content = line(HI) * 2 + line(HI)[:40] + "\n" + line(HI) * 2
        self.refused(content, "in.jsonl:3:41: error: line is cut", "1 of 5", "--skip-bad-lines")
        result = self.prepare(self.write(content), options=("--skip-bad-lines",))
        self.good(result)
        self.assertEqual(len(self.samples()), 4)
        self.assertEqual(result.err.count("warning"), 1)
        self.assertIn("in.jsonl:3:41: warning: line skipped: line is cut", result.err)
        self.assertIn("skipped: 1 of 5 lines: line is cut (1)", result.out)

    def test_cut_last_line_without_line_feed(self) -> None:
        self.refused(line(HI) + '{"messages": [{"role": "user", "con', "in.jsonl:2:36: error: line is cut")

    def test_malformed_json_names_the_column(self) -> None:
        self.refused_and_skipped('{"messages": [1 2]}\n', "in.jsonl:2:17: ", "malformed JSON")

    def test_not_plain_json(self) -> None:
        self.refused_and_skipped('{"messages": NaN}\n', "NaN is not JSON")
        self.refused_and_skipped('{"messages": [], "messages": []}\n', "repeated key: 'messages'")
        self.refused_and_skipped("[1]\n", "line is not an object", "list")
        self.refused_and_skipped(
            line(HI).strip() + line(HI), "more than one JSON value", f"in.jsonl:2:{len(line(HI))}:"
        )
        self.refused_and_skipped('{"a":' + "[" * 100_000 + "\n", "nested too deeply")
        self.refused_and_skipped('{"a":' + "1" * 5000 + "}\n", "malformed JSON")

    def test_all_bad_lines_are_reported_at_once(self) -> None:
        self.refused(("{\n" + line(HI)) * 12, "in.jsonl:1:", "in.jsonl:19:", "more bad lines follow", "12 of 24")

    def test_blank_lines_and_carriage_returns(self) -> None:
        self.good(self.prepare(self.write(line(HI).replace("\n", "\r\n") + "\n \t\r\n" + line(HI).strip())))
        self.assertEqual(len(self.samples()), 2)

    # C-09, hiyouga/LlamaFactory #9493: all samples dropped, and the message said only that none was valid.
    def test_nothing_usable_wrong_key(self) -> None:
        content = line([{"role": "user", "text": "a"}, {"role": "assistant", "text": "b"}]) * 10
        parts = (
            "0 of 10 usable",
            "10 x key 'content' is missing",
            "in.jsonl:1",
            "keys seen: 'role', 'text'",
            "rename 'text' to 'content'",
        )
        self.refused(content, *parts)
        result = self.prepare(self.write(content), options=("--skip-bad-lines",))
        self.assertEqual(result.status, 1)
        self.assertIn("0 of 10 usable", result.err)
        self.assertFalse(self.output.exists())

    def test_nothing_usable_empty_content(self) -> None:
        self.refused(
            line(talk("", "")) * 6 + line(talk("a", " ")) * 4,
            "0 of 10 usable",
            "10 x empty turn (first at ",
            "in.jsonl:1)",
        )

    def test_seven_good_three_bad(self) -> None:
        result = self.prepare(
            self.write(line(HI) * 4 + line(talk("", "b")) * 3 + line(HI) * 3), options=("--skip-bad-lines", "--json")
        )
        self.good(result)
        summary = json.loads(result.out)
        self.assertEqual(
            (summary["samples"], summary["skipped"], summary["skipped_reasons"]), (7, 3, {"empty turn": 3})
        )
        self.assertEqual(len(self.samples()), 7)

    def test_empty_file(self) -> None:
        self.refused("", "0 records")

    def test_missing_messages(self) -> None:
        self.refused_and_skipped(
            '{"conversations": []}\n', "key 'messages' is missing", "rename 'conversations' to 'messages'"
        )


class Encodings(Case):
    # C-05, huggingface/datasets #8241: a byte order mark changed what was read.
    def test_mark_at_the_start_changes_nothing(self) -> None:
        self.good(self.prepare(self.write(line(HI) * 2)))
        without = self.output.read_bytes()
        self.good(self.prepare(self.write(b"\xef\xbb\xbf" + (line(HI) * 2).encode())))
        self.assertEqual(self.output.read_bytes(), without)

    def test_mark_in_the_middle(self) -> None:
        offset = len(line(HI))
        self.refused_and_skipped(
            "\ufeff" + line(HI), f"in.jsonl:2:1: error: byte order mark inside the file (byte offset {offset}): U+FEFF"
        )
        text = line(HI).replace('"a"', '"é\ufeff"')
        self.refused(text, f"in.jsonl:1:{text.index(chr(0xFEFF)) + 1}: error: byte order mark inside")

    def test_escaped_mark_is_text(self) -> None:
        self.good(self.prepare(self.write(line(talk("\ufeffa", "b")))))  # json.dumps escapes it
        self.assertIn("user\n\ufeffa<|end|>", self.decoded()[0])

    def test_utf16(self) -> None:
        for encoding, mark in (("utf-16", "UTF-16"), ("utf-32", "UTF-32")):  # these write a mark
            self.refused(
                line(HI).encode(encoding), "file is not UTF-8", "in.jsonl, byte offset 0", f"{mark} byte order mark"
            )
        for encoding, place in (("utf-16-le", 1), ("utf-16-be", 0)):
            self.refused(
                line(HI).encode(encoding), "file is not UTF-8", f"in.jsonl, line 1, byte offset {place}", "NUL byte"
            )
        result = self.prepare(self.write(line(HI).encode("utf-16")), options=("--skip-bad-lines",))
        self.assertEqual(result.status, 1)  # its lines cannot even be told apart

    def test_invalid_utf8(self) -> None:
        content = line(HI).encode() + line(HI).encode().replace(b'"a"', b'"\xe9"')
        place = line(HI).index('"a"') + 1
        self.refused(
            content, f"in.jsonl:2:{place + 1}: error: invalid UTF-8 (byte offset {len(line(HI)) + place}): byte 0xe9"
        )

    # C-06, wbolster/jsonlines #53: splitting at Unicode line separators cut valid records.
    def test_only_line_feed_ends_a_line(self) -> None:
        odd = "\u2028 \u2029 \u0085 \v \f \x00 \x1c \x1d \x1e."
        as_is = json.dumps({"messages": talk(odd, "b")}, ensure_ascii=False) + "\n"
        self.assertIn("\u2028", as_is)
        self.good(self.prepare(self.write(as_is + line(talk(odd, odd)))))
        first, second = self.decoded()
        self.assertEqual(first, f"<|start|>user\n{odd}<|end|>\n<|start|>assistant\nb<|end|>\n")
        self.assertEqual(second, f"<|start|>user\n{odd}<|end|>\n<|start|>assistant\n{odd}<|end|>\n")

    def test_lone_surrogate_is_refused_and_a_pair_is_text(self) -> None:
        self.refused_and_skipped(line(talk("a", "b\ud800")), "lone surrogate escape (messages[1].content): \\ud800")
        self.good(self.prepare(self.write(line(talk("a", "\U0001f642")))))  # json.dumps writes a pair of escapes
        self.assertIn("\U0001f642", self.decoded()[0])


class Types(Case):
    # C-07, huggingface/datasets #7092 and #7222: a column that is null in the first file fixed its type.
    def test_null_is_absent_in_any_order_of_files(self) -> None:
        nulls = self.write(line(HI, system=None, tools=None) * 2, "nulls.jsonl")
        strings = self.write(line(HI, system="s") * 2, "strings.jsonl")
        absent = self.write(line([message | {"name": None, "tool_calls": None} for message in HI]), "absent.jsonl")
        plain = "<|start|>user\na<|end|>\n<|start|>assistant\nb<|end|>\n"
        with_system = "<|start|>system\ns<|end|>\n" + plain
        expected = {nulls: [plain] * 2, strings: [with_system] * 2, absent: [plain]}
        for order in ([nulls, strings, absent], [absent, strings, nulls], [strings, absent, nulls]):
            self.good(self.prepare(*order))
            self.assertEqual(self.decoded(), [text for path in order for text in expected[path]])

    def test_wrong_types(self) -> None:
        self.refused_and_skipped(line(HI, system=7), "'system' has the wrong type: got number 7; expected string")
        self.refused_and_skipped(
            '{"messages": "hi"}\n', "'messages' has the wrong type: got string 'hi'; expected list"
        )
        self.refused_and_skipped(line(["hi"]), "(message 0): got string 'hi'; expected object")
        self.refused_and_skipped(
            line([{"role": "user", "content": ["a"]}]),
            "'content' has the wrong type (message 0, role 'user'): got list",
            "expected string",
        )
        self.refused_and_skipped(
            line([{"role": True, "content": "a"}]),
            "'role' has the wrong type (message 0): got boolean true; expected string",
        )

    def test_null_content_is_missing(self) -> None:
        self.refused_and_skipped(
            line([{"role": "user", "content": None}]), "key 'content' is missing", "keys seen: 'role'"
        )

    def test_keys_that_change_the_meaning_are_refused(self) -> None:
        self.refused_and_skipped(
            line([HI[0], HI[1] | {"tool_calls": [{"id": 1}]}]),
            "'tool_calls' is not supported (message 1, role 'assistant')",
        )
        self.refused_and_skipped(line([HI[0], HI[1] | {"weight": 0}]), "'weight' is not supported")
        self.good(self.prepare(self.write(line([HI[0], HI[1] | {"tool_calls": [], "weight": 1}]))))

    def test_other_keys_are_passed_over_and_counted(self) -> None:
        result = self.prepare(self.write(line(HI, id="x") + line(HI, id=None)), options=("--json",))
        self.good(result)
        self.assertEqual(json.loads(result.out)["ignored_keys"], {"id": 1})


class Roles(Case):
    # C-08, unslothai/unsloth #334: turns that do not alternate; only the template's error appeared.
    def test_starts_with_assistant(self) -> None:
        self.refused_and_skipped(line([HI[1], *HI]), "conversation starts with assistant (message 0, role 'assistant')")
        self.refused_and_skipped(
            line([{"role": "system", "content": "s"}, HI[1]]),
            "conversation starts with assistant (message 1, role 'assistant')",
        )

    def test_two_in_a_row(self) -> None:
        self.refused_and_skipped(line([HI[0], *HI]), "two user messages in a row (message 1, role 'user')")
        self.refused_and_skipped(line([*HI, HI[1]]), "two assistant messages in a row (message 2, role 'assistant')")

    def test_unknown_role(self) -> None:
        for role, choice in (
            ("human", "use 'user'"),
            ("gpt", "use 'assistant'"),
            ("User", "use 'user'"),
            ("asistant", "use 'assistant'"),
            ("tool", "one of system, user, assistant"),
        ):
            self.refused_and_skipped(
                line([{"role": role, "content": "a"}, HI[1]]),
                f"unknown role (message 0, role '{role}'): '{role}'; {choice}",
            )

    def test_ends_with_user(self) -> None:
        self.refused_and_skipped(line([*HI, HI[0]]), "conversation ends with user (message 2, role 'user')")

    def test_only_system(self) -> None:
        self.refused_and_skipped(
            line([{"role": "system", "content": "s"}]), "only a system message (message 0, role 'system')"
        )
        self.refused_and_skipped(line([], system="s"), "only a system message")
        self.refused_and_skipped(line([]), "no messages")

    def test_system_that_is_not_first(self) -> None:
        system = {"role": "system", "content": "s"}
        self.refused_and_skipped(line([*HI, system, *HI]), "system message is not the first (message 2, role 'system')")
        self.refused_and_skipped(
            line([system, *HI], system="t"),
            "system message is not the first (message 0, role 'system')",
            "key 'system'",
        )

    def test_empty_turn(self) -> None:
        self.refused_and_skipped(line(talk("a", "b", " \n", "d")), "empty turn (message 2, role 'user')")


class Output(Case):
    def test_old_file_survives_a_failed_run(self) -> None:
        self.output.write_text("old")
        self.assertEqual(self.prepare(self.write("{\n")).status, 1)
        self.assertEqual(self.output.read_text(), "old")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["in.jsonl", "model", "out.jsonl"])

    def test_many_conversations_keep_their_order(self) -> None:
        texts = [f"{'x' * (i % 7)}{i}" for i in range(200)]  # several batches
        self.good(self.prepare(self.write("".join(line(talk("a", text)) for text in texts))))
        self.assertEqual([text.split("assistant\n")[1].removesuffix("<|end|>\n") for text in self.decoded()], texts)

    def test_output_over_an_input(self) -> None:
        path = self.write(line(HI))
        result = run("prepare", "--tokenizer", self.tokenizer, path, "-o", path)
        self.assertEqual(result.status, 1)
        self.assertEqual(path.read_text(), line(HI))

    def test_device_as_output(self) -> None:
        self.good(run("prepare", "--tokenizer", self.tokenizer, self.write(line(HI)), "-o", "/dev/null"))
        self.assertFalse(os.path.isfile("/dev/null"))

    def test_unwritable_output_and_unreadable_input(self) -> None:
        result = run(
            "prepare", "--tokenizer", self.tokenizer, self.write(line(HI)), "-o", self.folder / "no" / "out.jsonl"
        )
        self.assertEqual((result.status, "cannot write output (-o)" in result.err), (1, True))
        result = self.prepare(self.folder / "none.jsonl")
        self.assertEqual((result.status, "cannot read file" in result.err), (1, True))

    def test_quiet_and_summary(self) -> None:
        path = self.write(line(talk("y?", "y")))
        self.assertEqual(self.prepare(path, options=("--quiet",)).out, "")
        summary = json.loads(self.prepare(path, options=("--json",)).out)
        self.assertEqual((summary["tokens"], summary["trained_tokens"], summary["sample_tokens"]["max"]), (24, 2, 24))
        self.assertEqual(summary["straddling_tokens"], 0)
        self.assertIn("1 samples, 24 tokens, 2 trained", self.prepare(path).out)


class Check(Case):
    def check(self, sample: object, *options: object) -> Result:
        return run("check", self.write(json.dumps(sample) + "\n"), *options)

    def bad(self, sample: object, *parts: str, options: tuple[object, ...] = ()) -> None:
        result = self.check(sample, *options)
        self.assertEqual(result.status, 1, result.out)
        for part in parts:
            self.assertIn(part, result.err)

    def test_good_files(self) -> None:
        result = self.check({"input_ids": [1, 2, 3], "loss_mask": [0, 1, 0.5], "position_ids": [0, 5, 6]}, "--json")
        self.good(result)
        summary = json.loads(result.out)
        self.assertEqual((summary["samples"], summary["tokens"], summary["trained_tokens"]), (1, 3, 2))
        self.good(self.check({"input_ids": [1, 2, 3], "labels": [1, -100, 3], "loss_mask": None}))
        self.good(self.prepare(self.write(line(HI))))
        self.good(run("check", self.output, "--vocab-size", 262))

    # C-25, allenai/open-instruct #1862: ids are checked against the embedding's rows.
    def test_token_ids(self) -> None:
        self.good(self.check({"input_ids": [0, 319], "loss_mask": [0, 1]}, "--vocab-size", 320))
        for token in (320, -1, -100, 2**31):
            self.bad(
                {"input_ids": [0, token], "loss_mask": [0, 1]},
                "in.jsonl:1:1: error: sample 1:",
                f"(position 1): {token};",
                "320",
                options=("--vocab-size", 320),
            )
        self.bad({"input_ids": [0, 2**31], "loss_mask": [0, 1]}, f"(position 1): {2**31};")

    def test_bad_samples(self) -> None:
        self.bad({"input_ids": [1, 2], "loss_mask": [0]}, "'loss_mask' has another length", ": 1; 2")
        self.bad({"input_ids": [1, 2]}, "needs 'loss_mask' or 'labels'")
        self.bad({"input_ids": [1, 2], "loss_mask": [0, 1], "labels": [-100, 2]}, "exactly one")
        self.bad({"input_ids": [], "loss_mask": []}, "'input_ids' is empty")
        self.bad({"input_ids": [1, True], "loss_mask": [0, 1]}, "(position 1): got boolean true; expected integer")
        self.bad({"input_ids": [1, 2.0], "loss_mask": [0, 1]}, "got number 2.0")
        self.bad({"input_ids": [1, 2], "loss_mask": [0, -1]}, "weight out of range (position 1): -1")
        self.bad({"input_ids": [1, 2], "loss_mask": [0, True]}, "(position 1): got boolean true")
        self.bad(
            {"input_ids": [1, 2, 3], "labels": [2, 3, -100]}, "label differs from its token (position 0): 2; 1 or -100"
        )
        self.bad(
            {"input_ids": [1, 2], "loss_mask": [0, 1], "position_ids": [3, 3]},
            "positions do not increase (position 1): 3",
        )
        self.bad({"messages": []}, "'input_ids' is missing", "sft-data prepare")

    def test_first_token_alone_does_not_count_as_trained(self) -> None:
        self.bad({"input_ids": [1, 2], "loss_mask": [1, 0]}, "no trained token")

    def test_reports_every_bad_sample(self) -> None:
        good, bad = '{"input_ids": [1, 2], "loss_mask": [0, 1]}\n', '{"input_ids": [1, 2]}\n'
        result = run("check", self.write(good + bad + good + bad))
        self.assertEqual(result.status, 1)
        for part in ("in.jsonl:2:1: error: sample 2", "in.jsonl:4:1: error: sample 4", "2 of 4 samples are bad"):
            self.assertIn(part, result.err)


class CommandLine(Case):
    def launch(self, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(LAUNCHER), *map(str, arguments)], capture_output=True, text=True, timeout=60, **options
        )

    def test_launcher_from_another_folder_and_through_a_link(self) -> None:
        link = self.folder / "link"
        link.symlink_to(LAUNCHER)
        (self.folder / "json.py").write_text("raise SystemExit('the wrong json')")
        self.write(line(HI))
        result = subprocess.run(
            [str(link), "prepare", "--tokenizer", "model", "in.jsonl", "-o", "out.jsonl"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.samples()), 1)

    def test_missing_packages_are_explained(self) -> None:
        # -S hides the packages of the environment
        code = f"import sys; sys.path.insert(0, {str(LAUNCHER.parent)!r}); from sft_data.cli import main; sys.exit(main(sys.argv[1:]))"
        path = self.write(line(HI))
        result = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code, "prepare", "--tokenizer", self.tokenizer, path, "-o", self.output],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("Python package missing", result.stderr)
        self.assertIn("python-env.sh", result.stderr)

    def test_reader_that_stops_early(self) -> None:
        self.good(self.prepare(self.write(line(talk("a", "b" * 1000)) * 300)))
        with subprocess.Popen(
            [sys.executable, str(LAUNCHER), "show", str(self.output), "-n", "300"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout and process.stderr
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.wait(timeout=60), 0)

    def test_help_version_and_wrong_usage(self) -> None:
        self.assertRegex(run("--version").out, r"^sft-data \d+\.\d+\.\d+\n$")
        for arguments in ([], ["prepare"], ["show"], ["check"]):
            text = run(*arguments, "--help")
            self.assertEqual(text.status, 0)
            self.assertIn("usage: sft-data", text.out)
        self.assertIn("default: off", run("prepare", "--help").out)
        for arguments in ([], ["prepare", "x"], ["show", "x", "-n", "0"], ["check", "x", "--vocab", "3"], ["nothing"]):
            wrong = run(*arguments)
            self.assertEqual(wrong.status, 2, arguments)
            self.assertIn("sft-data: error: wrong usage (command line)", wrong.err)


if __name__ == "__main__":
    unittest.main()
