"""The model's tokenizer and chat template, read from a Hugging Face folder."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

from .conversation import Messages
from .errors import BadLine, Failure


def _libraries() -> tuple[Any, Any]:
    try:
        import jinja2.ext
        import jinja2.sandbox
        import tokenizers
    except ImportError as error:
        import sys

        raise Failure(
            f"Python package missing ({sys.executable}): {error.name}; run tools/scripts/python-env.sh, or install tokenizers and jinja2"
        ) from None
    return tokenizers, jinja2


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read file ({path}): {error}; the file as the model's authors give it") from None
    if not isinstance(value, dict):
        raise Failure(
            f"file is not a JSON object ({path}): {type(value).__name__}; the file as the model's authors give it"
        )
    return value


def load_tokenizer(folder: str) -> Any:
    """The fast tokenizer in DIR/tokenizer.json, as a tokenizers.Tokenizer that neither cuts nor pads."""
    tokenizers, _ = _libraries()
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        what = "folder does not exist" if not Path(folder).is_dir() else "no tokenizer.json in the folder"
        raise Failure(
            f"{what} (--tokenizer): {folder}; a Hugging Face model folder with tokenizer.json and tokenizer_config.json"
        )
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise Failure(f"cannot read tokenizer ({path}): {error}; the file as the model's authors give it") from None
    # Settings saved in the file would cut long conversations silently.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def embedding_rows(folder: str) -> int | None:
    """Rows of the model's embedding, where config.json lies beside the tokenizer."""
    path = Path(folder) / "config.json"
    rows = _read_json(path).get("vocab_size") if path.is_file() else None
    return rows if isinstance(rows, int) else None


class ChatTemplate:
    """Renders conversations as Hugging Face's apply_chat_template does: same environment, same variables."""

    def __init__(self, folder: str) -> None:
        _, jinja2 = _libraries()
        config_path = Path(folder) / "tokenizer_config.json"
        config = _read_json(config_path) if config_path.is_file() else {}
        source, self.path = self._find(folder, config)

        # Variables that templates use, such as bos_token; older files give objects instead of strings.
        self.variables: dict[str, Any] = {}
        for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
            token = config.get(name)
            text = token.get("content") if isinstance(token, dict) else token
            if isinstance(text, str):
                self.variables[name] = text

        class Generation(jinja2.ext.Extension):
            """`{% generation %}` marks the trained part for other programs; here the positions tell, so it is transparent."""

            tags = {"generation"}

            def parse(self, parser: Any) -> Any:
                line = next(parser.stream).lineno
                body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
                return jinja2.nodes.Scope(body, lineno=line)

        class Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
            """The sandbox, without its long checks for `loop.first` and the like: prefixes are rendered very often."""

            def getattr(self, obj: Any, attribute: str) -> Any:
                if type(obj) is jinja2.runtime.LoopContext and attribute in (
                    "first",
                    "last",
                    "index",
                    "index0",
                    "previtem",
                    "nextitem",
                ):
                    return getattr(obj, attribute)
                return super().getattr(obj, attribute)

        environment = Environment(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
        )

        def raise_exception(message: str) -> None:
            raise jinja2.TemplateError(message)

        def to_json(value: Any, **options: Any) -> str:
            return json.dumps(value, ensure_ascii=False, **options)

        started = datetime.datetime.now()  # one time for the whole run, so that prefixes stay prefixes
        environment.globals["raise_exception"] = raise_exception
        environment.globals["strftime_now"] = started.strftime
        environment.filters["tojson"] = to_json
        try:
            self.template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise Failure(
                f"chat template is not valid Jinja ({self.path}, template line {error.lineno}): {error.message}; "
                "the template as the model's authors give it"
            ) from None
        self.error = jinja2.TemplateError

    @staticmethod
    def _find(folder: str, config: dict[str, Any]) -> tuple[str, str]:
        alone = Path(folder) / "chat_template.jinja"
        if alone.is_file():  # newer folders keep it here, and transformers prefers it
            return alone.read_text(encoding="utf-8"), str(alone)
        template = config.get("chat_template")
        if isinstance(template, list):  # several named ones
            named = {item.get("name"): item.get("template") for item in template if isinstance(item, dict)}
            template = named.get("default")
        if not isinstance(template, str):
            raise Failure(
                f"no chat template (--tokenizer): {folder}; a key 'chat_template' in tokenizer_config.json or a file chat_template.jinja"
            )
        return template, str(Path(folder) / "tokenizer_config.json")

    def render(self, messages: Messages, add_generation_prompt: bool) -> str:
        try:
            return self.template.render(
                messages=messages,
                add_generation_prompt=add_generation_prompt,
                tools=None,
                documents=None,
                **self.variables,
            )
        except self.error as error:
            raise BadLine(
                "chat template refuses the conversation", f" ({self.path}): {error}; what the template accepts"
            ) from None
        except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
            raise BadLine(
                "chat template fails", f" ({self.path}): {type(error).__name__}: {error}; check the template"
            ) from None
