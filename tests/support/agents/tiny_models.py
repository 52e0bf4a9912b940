"""Tiny models and screenshots for tests with real tokenizers, processors and engines."""

import io
import random
from pathlib import Path

from PIL import Image, ImageDraw
from transformers import Qwen3VLForConditionalGeneration

from agents.prompts import system_prompt
from agents.rendering import render_action
from ops.quickstart.tiny_model import build_tiny_model, sentence_tokenizer
from schemas.messages import Action, ActionKind, Screenshot


def build(folder: Path, *, seed: int, tied: bool = False) -> Path:
    """An untrained tiny Qwen3-VL; the tokenizer is the same for every seed. `tied`: input embeddings are output weights."""
    clicks = [Action(kind=ActionKind.CLICK, point=(x, y)) for x in range(0, 1000, 100) for y in range(0, 1000, 100)]
    answers = [render_action(click, thought="Click the button.") for click in clicks]
    build_tiny_model(folder, sentence_tokenizer([system_prompt("vanilla"), "Task: click the button\n", *answers]), seed=seed)
    if tied:
        _tie(folder)
    return folder


def _tie(folder: Path) -> None:
    model = Qwen3VLForConditionalGeneration.from_pretrained(folder)
    model.config.tie_word_embeddings = model.config.text_config.tie_word_embeddings = True
    model.lm_head.weight = model.model.language_model.embed_tokens.weight
    model.save_pretrained(folder)


def screenshot(seed: int, width: int = 160, height: int = 210) -> Screenshot:
    """A JPEG with one coloured box."""
    draw_at = random.Random(seed)
    image = Image.new("RGB", (width, height), (235, 238, 240))
    x, y = draw_at.randrange(width // 2), draw_at.randrange(height // 2)
    colour = tuple(draw_at.randrange(256) for _ in range(3))
    ImageDraw.Draw(image).rectangle([x, y, x + width // 3, y + height // 5], fill=colour)
    encoded = io.BytesIO()
    image.save(encoded, "JPEG", quality=80)
    return Screenshot(data=encoded.getvalue(), media_type="image/jpeg", width=width, height=height)
