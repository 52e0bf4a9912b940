"""Chat messages to prompt tokens by the model folder's tokenizer and chat template: neither torch nor transformers.

Invariant: the tokens are those of the model's own transformers processor for the same messages and screenshots.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from agents.engine import ChatMessage
from schemas.errors import ConfigurationError
from schemas.messages import Screenshot


@dataclass(frozen=True, slots=True)
class ImageScale:
    """How the image processor shrinks screenshots: sides become multiples of `cell`, the area stays between the
    bounds."""

    cell: int
    """Pixels of one image token's side: patch size times merge size."""
    min_pixels: int
    max_pixels: int

    def num_tokens(self, screenshot: Screenshot) -> int:
        """Tokens that stand for a screenshot (the processor's own rounding, half to even)."""
        height, width = screenshot.height, screenshot.width
        rows, columns = round(height / self.cell), round(width / self.cell)
        if rows * columns * self.cell**2 > self.max_pixels:
            shrink = math.sqrt(height * width / self.max_pixels) * self.cell
            rows, columns = max(1, math.floor(height / shrink)), max(1, math.floor(width / shrink))
        elif rows * columns * self.cell**2 < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (height * width)) / self.cell
            rows, columns = math.ceil(height * grow), math.ceil(width * grow)
        return rows * columns


class PromptTokenizer:
    """The tokenizer and chat template of one model folder.

    Raises:
        ConfigurationError: the folder lacks a file that a vision-language model has.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(_existing(folder, "tokenizer.json")))
        self._template = _environment().from_string(_chat_template(folder))
        config = _read(_existing(folder, "config.json"))
        self.image_token: int = config["image_token_id"]
        self.stop_tokens = _stop_tokens(folder, config)
        self.scale = _image_scale(folder)
        eos = _read(_existing(folder, "tokenizer_config.json")).get("eos_token", "<|im_end|>")
        self._eos: str = eos["content"] if isinstance(eos, dict) else eos
        self._special = frozenset(
            token for token, added in self._tokenizer.get_added_tokens_decoder().items() if added.special
        )

    @property
    def suppressed(self) -> tuple[int, ...]:
        """Control tokens that must never be sampled: all but those that end a turn. A sampled image placeholder has no
        screenshot behind it."""
        return tuple(sorted(self._special - self.stop_tokens))

    @property
    def end_of_turn(self) -> int:
        """The token that a well-formed answer ends with."""
        token: int | None = self._tokenizer.token_to_id(self._eos)
        if token is None:
            raise ConfigurationError(
                f"tokenizer_config.json names {self._eos!r} as eos_token, which tokenizer.json does not hold"
            )
        return token

    def prompt(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Prompt tokens with one placeholder a screenshot, ready for the answer to be generated."""
        rendered = self._template.render(messages=[_template_message(m) for m in messages], add_generation_prompt=True)
        return self.encode(rendered)

    def expanded_prompt(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Prompt tokens as the model sees them: a placeholder for every image token."""
        screenshots = (part for message in messages for part in message.content if isinstance(part, Screenshot))
        tokens: list[int] = []
        for token in self.prompt(messages):
            repeats = self.scale.num_tokens(next(screenshots)) if token == self.image_token else 1
            tokens.extend([token] * repeats)
        return tokens

    def length(self, tokens: Sequence[int], screenshots: Sequence[Screenshot]) -> int:
        """Tokens of the expanded prompt, from those with one placeholder a screenshot."""
        return len(tokens) + sum(self.scale.num_tokens(screenshot) - 1 for screenshot in screenshots)

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """Text without control tokens."""
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text


def _template_message(message: ChatMessage) -> dict[str, object]:
    if all(isinstance(part, str) for part in message.content):
        return {"role": message.role, "content": "".join(part for part in message.content if isinstance(part, str))}
    parts = [{"type": "text", "text": part} if isinstance(part, str) else {"type": "image"} for part in message.content]
    return {"role": message.role, "content": parts}


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


def _image_scale(folder: Path) -> ImageScale:
    if (folder / "processor_config.json").exists():
        settings = _read(folder / "processor_config.json").get("image_processor")
        if isinstance(settings, dict):
            return _scale_from(settings)
    return _scale_from(_read(_existing(folder, "preprocessor_config.json")))


def _scale_from(settings: dict) -> ImageScale:  # type: ignore[type-arg]
    size = settings["size"]
    cell = settings["patch_size"] * settings["merge_size"]
    return ImageScale(cell=cell, min_pixels=size["shortest_edge"], max_pixels=size["longest_edge"])


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
        raise ConfigurationError(f"{folder} has no {name}: policy_config.base_model must be the folder of a Qwen3-VL model")
    return path


def _read(path: Path) -> dict:  # type: ignore[type-arg]
    settings: dict = json.loads(path.read_text(encoding="utf-8"))  # type: ignore[type-arg]
    return settings
