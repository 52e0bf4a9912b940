"""Chat messages to prompt tokens by the model folder's tokenizer and chat template: neither torch nor transformers.

Invariant: the tokens are those of the model's own transformers processor for the same messages and screenshots; but what an
earlier answer has thought stays, where a template would drop it, and no words of users and answers are control tokens.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from agents.earlier_answers import CLOSING, OPENING
from agents.engine import ChatMessage
from agents.image_tokens import ImageTokens, image_tokens
from agents.plain_text import beginnings, parted
from schemas.errors import ConfigurationError
from schemas.messages import Screenshot

_TOKENS_A_TILE = 256
"""Where a processor's settings do not say."""
_KEPT = {tag: f"\ue000{tag.strip('<>')}\ue001" for tag in (OPENING, CLOSING)}
"""Templates drop what stands between these tags in earlier answers: while one is filled in, they are spelled so."""


class PromptTokenizer:
    """The tokenizer and chat template of one model folder.

    Raises:
        ConfigurationError: the folder lacks a file that a vision-language model has.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(_existing(folder, "tokenizer.json")))
        self._template = _environment().from_string(_chat_template(folder))
        config = _read(_existing(folder, "config.json"))
        self.image_token = _image_token(folder, config)
        self.stop_tokens = _stop_tokens(folder, config)
        self._images = _image_tokens(folder)
        self._framing = [self._token(token) for token in self._images.framing]
        eos = _read(_existing(folder, "tokenizer_config.json")).get("eos_token", "<|im_end|>")
        self._eos: str = eos["content"] if isinstance(eos, dict) else eos
        self._special = frozenset(
            token for token, added in self._tokenizer.get_added_tokens_decoder().items() if added.special
        )
        self._control = beginnings(self.control_texts)

    @property
    def suppressed(self) -> tuple[int, ...]:
        """Control tokens that must never be sampled: all but those that end a turn. A sampled image placeholder has no
        screenshot behind it."""
        return tuple(sorted(self._special - self.stop_tokens))

    @property
    def control_texts(self) -> frozenset[str]:
        """How control tokens are spelt: text that holds one is read as the token."""
        spelt = (self._tokenizer.id_to_token(token) for token in self._special)
        return frozenset(text for text in spelt if text)

    @property
    def end_of_turn_text(self) -> str:
        return self._eos

    @property
    def end_of_turn(self) -> int:
        """The token that a well-formed answer ends with."""
        return self._token(self._eos)

    def prompt(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Prompt tokens with one placeholder a screenshot, ready for the answer to be generated."""
        rendered = self.render([self._template_message(message) for message in messages])
        for tag, spelled in _KEPT.items():
            rendered = rendered.replace(spelled, tag)
        return self.encode(rendered)

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        tools: Sequence[Mapping[str, object]] = (),
        asks: bool = True,
    ) -> str:
        """Text by the chat template, from messages and tools in the form that templates take.

        Args:
            asks: whether an answer is to follow.

        Raises:
            jinja2.TemplateError, TypeError, ValueError: the template cannot take such messages.
        """
        return self._template.render(messages=messages, tools=list(tools) or None, add_generation_prompt=asks)

    def expanded_prompt(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Prompt tokens as the model sees them: a placeholder for every image token."""
        screenshots = [part for message in messages for part in message.content if isinstance(part, Screenshot)]
        return self.expanded(self.prompt(messages), screenshots)

    def expanded(self, tokens: Sequence[int], screenshots: Sequence[Screenshot]) -> list[int]:
        """The same from prompt tokens with one placeholder a screenshot."""
        shown = iter(screenshots)
        found: list[int] = []
        for token in tokens:
            found += self._shown(next(shown)) if token == self.image_token else [token]
        return found

    def length(self, tokens: Sequence[int], screenshots: Sequence[Screenshot]) -> int:
        """Tokens of the expanded prompt, from those with one placeholder a screenshot."""
        return len(tokens) + sum(len(self._shown(screenshot)) - 1 for screenshot in screenshots)

    def _shown(self, screenshot: Screenshot) -> list[int]:
        """What stands in a prompt for a screenshot."""
        return [*self._framing[:1], *[self.image_token] * self._images.count(screenshot), *self._framing[1:]]

    def _template_message(self, message: ChatMessage) -> dict[str, object]:
        if all(isinstance(part, str) for part in message.content):
            text = "".join(part for part in message.content if isinstance(part, str))
            return {"role": message.role, "content": self._said(text, message)}
        parts = [
            {"type": "text", "text": self._said(part, message)} if isinstance(part, str) else {"type": "image"}
            for part in message.content
        ]
        return {"role": message.role, "content": parts}

    def _said(self, text: str, message: ChatMessage) -> str:
        """As it stands in a template."""
        if message.role == "system":
            return text
        if message.role == "assistant":
            for tag, spelled in _KEPT.items():
                text = text.replace(tag, spelled)
        return parted(text, self._control)

    def _token(self, text: str) -> int:
        token: int | None = self._tokenizer.token_to_id(text)
        if token is None:
            raise ConfigurationError(f"tokenizer.json does not hold the token {text!r}: it belongs to another model")
        return token

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """Text without control tokens."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text


def _environment() -> ImmutableSandboxedEnvironment:
    """The settings that chat templates are written for (those of transformers)."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment.globals["raise_exception"] = refuse
    return environment


def _chat_template(folder: Path) -> str:
    if (separate := folder / "chat_template.jinja").exists():
        return separate.read_text(encoding="utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        if (folder / name).exists():
            template = _read(folder / name).get("chat_template")
            if isinstance(template, str):
                return template
    raise ConfigurationError(f"{folder} has no chat template: put chat_template.jinja of the model there")


def _image_tokens(folder: Path) -> ImageTokens:
    whole = _read(folder / "processor_config.json") if (folder / "processor_config.json").exists() else {}
    settings = whole.get("image_processor")
    if not isinstance(settings, dict):
        settings = _read(_existing(folder, "preprocessor_config.json"))
    return image_tokens(settings, whole.get("image_seq_length", _TOKENS_A_TILE))


def _image_token(folder: Path, config: dict) -> int:  # type: ignore[type-arg]
    token = config.get("image_token_id", config.get("image_token_index"))
    if not isinstance(token, int):
        raise ConfigurationError(
            f"{folder}/config.json has no image_token_id: policy_config.base_model must be a model that sees"
        )
    return token


def _stop_tokens(folder: Path, config: dict) -> frozenset[int]:  # type: ignore[type-arg]
    generation = folder / "generation_config.json"
    stop = _read(generation).get("eos_token_id") if generation.exists() else None
    if stop is None:
        stop = config.get("text_config", config).get("eos_token_id")
    if stop is None:
        raise ConfigurationError(f"{folder} does not say which token ends a turn: set eos_token_id in generation_config.json")
    return frozenset(stop if isinstance(stop, list) else [stop])


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.exists():
        raise ConfigurationError(f"{folder} has no {name}: policy_config.base_model must be the folder of a model that sees")
    return path


def _read(path: Path) -> dict:  # type: ignore[type-arg]
    settings: dict = json.loads(path.read_text(encoding="utf-8"))  # type: ignore[type-arg]
    return settings
