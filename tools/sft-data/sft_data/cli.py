"""The command line of sft-data."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from . import __version__
from .errors import Failure

DESCRIPTION = """\
Turns conversations into tokenized samples for sft-run, with the model's own tokenizer and chat template.

  sft-data prepare --tokenizer DIR INPUT... -o FILE   tokenize conversations
  sft-data show FILE -n N                             print samples, trained tokens marked
  sft-data check FILE                                 validate a prepared file
"""
EPILOG = """\
Exit codes: 0 done; 1 bad input; 2 wrong usage.  `sft-data COMMAND --help` tells more.
"""
PREPARE = """\
Reads conversations, one JSON object a line:

  {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}

renders each with the chat template in DIR, tokenizes it, and writes one sample a line:

  {"input_ids": [1, 4093, ...], "loss_mask": [0, 0, ..., 1, 1]}

Entry i of loss_mask tells whether token i is a target, predicted from the tokens before it. Trained are the answers of the
assistant with their end-of-turn token; the first token never is.
"""
PREPARE_EPILOG = """\
What is accepted:
  At most one system message, at the front (or a key "system": TEXT beside "messages"); then user and assistant in turn,
  user first, assistant last; every content a string with text in it. Null counts as absent. Nothing is re-ordered,
  merged, cut or filled in; over-long samples are kept (sft-run --over-long decides).
  UTF-8; one byte order mark at the start of a file is skipped; only LF ends a line; lone surrogate escapes are refused.
  By default one bad line fails the run, after all lines were looked at. With --skip-bad-lines it is left out, with a
  warning and a count. No usable line at all is an error either way. FILE appears only when it is whole.

Example:
  sft-data prepare --tokenizer build/models/SmolLM2-135M-Instruct build/data/train.jsonl -o build/data/train.tokens.jsonl
  sft-data show build/data/train.tokens.jsonl -n 1 --tokenizer build/models/SmolLM2-135M-Instruct
"""
SHOW = """\
Prints the first samples of a prepared file. Trained tokens are green on a terminal and in [[ ]] elsewhere.
With --tokenizer the tokens are decoded to text, without it their ids are shown.
"""
CHECK = """\
Validates a prepared file as sft-run will: keys, types, lengths, token ids, weights, positions. Prints the first problems
with their places, and counts.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"sft-data: error: wrong usage (command line): {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return value


def make_parser() -> Parser:
    raw = argparse.RawDescriptionHelpFormatter
    # Prefixes of options stay errors, so that new options never change what an old command line means.
    parser = Parser(prog="sft-data", description=DESCRIPTION, epilog=EPILOG, formatter_class=raw, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"sft-data {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)

    def reporting(command: Parser) -> None:
        group = command.add_argument_group("reporting")
        group.add_argument("--quiet", action="store_true", help="print errors and warnings only (default: off)")
        group.add_argument("--json", action="store_true", help="print the summary as one JSON object (default: off)")

    command = commands.add_parser(
        "prepare",
        help="tokenize conversations",
        description=PREPARE,
        epilog=PREPARE_EPILOG,
        formatter_class=raw,
        allow_abbrev=False,
    )
    command.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="JSONL file of conversations; several are read one after the other"
    )
    group = command.add_argument_group("files")
    group.add_argument(
        "--tokenizer",
        required=True,
        metavar="DIR",
        help="model folder: tokenizer.json, and the chat template in tokenizer_config.json or chat_template.jinja",
    )
    group.add_argument("-o", "--output", required=True, metavar="FILE", help="JSONL file to write")
    group = command.add_argument_group("policy")
    group.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="leave unusable lines out, with a warning and a count (default: they fail the run)",
    )
    group.add_argument(
        "--allow-empty-answers",
        action="store_true",
        help="accept assistant messages without text; only their end-of-turn token is trained (default: they are bad lines)",
    )
    reporting(command)

    command = commands.add_parser(
        "show", help="print samples, trained tokens marked", description=SHOW, formatter_class=raw, allow_abbrev=False
    )
    command.add_argument("file", metavar="FILE", help="prepared JSONL file")
    command.add_argument("-n", "--samples", type=positive, default=3, metavar="N", help="how many samples (default: 3)")
    command.add_argument("--tokenizer", metavar="DIR", help="model folder, to show text instead of token ids")
    command.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour instead of brackets (default: auto, on a terminal)",
    )

    command = commands.add_parser(
        "check", help="validate a prepared file", description=CHECK, formatter_class=raw, allow_abbrev=False
    )
    command.add_argument("file", metavar="FILE", help="prepared JSONL file")
    command.add_argument(
        "--vocab-size",
        type=positive,
        metavar="N",
        help="rows of the model's embedding; token ids must be below (default: 2^31)",
    )
    reporting(command)
    return parser


def run(arguments: argparse.Namespace) -> int:
    # Imported here, so that --help and --version do not wait for the tokenizer library.
    if arguments.command == "prepare":
        from .prepare import prepare

        return prepare(
            arguments.tokenizer,
            arguments.inputs,
            arguments.output,
            arguments.skip_bad_lines,
            arguments.allow_empty_answers,
            arguments.quiet,
            arguments.json,
        )
    from . import sample

    if arguments.command == "show":
        colour = arguments.color == "always" or (
            arguments.color == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        )
        return sample.show(arguments.file, arguments.samples, arguments.tokenizer, colour)
    return sample.check(arguments.file, arguments.vocab_size, arguments.quiet, arguments.json)


def main(arguments: list[str]) -> int:
    # Text of conversations may hold any character, whatever the locale says.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        status = run(make_parser().parse_args(arguments))
        sys.stdout.flush()
        return status
    except Failure as failure:
        sys.stdout.flush()
        print(f"sft-data: error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("sft-data: error: interrupted (signal): nothing was written; run it again", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
