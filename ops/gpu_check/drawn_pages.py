"""Drawn pages with a button each, and demonstrated clicks on them: work of known size for engines, without any browser."""

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from agents.engine import ChatMessage, Generation
from agents.prompts import system_prompt
from agents.rendering import render_action
from agents.tokens import PromptTokenizer
from ops.quickstart.button_material import reading_matter
from ops.quickstart.recipe import GRID, THOUGHT
from ops.quickstart.tiny_model import TinyShape, build_tiny_model, sentence_tokenizer
from schemas.ids import EpisodeId, PolicyVersion
from schemas.messages import Action, ActionKind, RecordRef, Screenshot, StepRequest, VersionSpan
from schemas.model_config import ModelConfig
from trainer.episodes.sample_builder import SampleBuilder
from trainer.samples import Sample

PAGE = 1280, 768
"""Pixels of a page as WebGym has them."""
NUM_PAGES = 32
"""Of an optimizer step, and of those whose answers policy and trainer are compared by."""
_WORDS = ("Save", "Send", "Open", "Close", "Next", "Back", "Delete", "Print")


@dataclass(frozen=True)
class Demonstration:
    """One step, before any processor has seen it."""

    system: str
    instruction: str
    screenshot: Screenshot
    answer: str


def demonstrations(count: int, *, width: int = 160, height: int = 210, seed: int = 0) -> list[Demonstration]:
    """A page with one coloured button each, and the click on it; sides in pixels."""
    draw_at = random.Random(seed)  # noqa: S311 - drawn pages
    return [_demonstration(draw_at, width, height) for _ in range(count)]


def build_model(folder: Path, *, seed: int = 0, shape: TinyShape | None = None) -> None:
    """The quickstart's untrained model."""
    matter = reading_matter([_instruction(word) for word in _WORDS], ModelConfig())
    build_tiny_model(folder, sentence_tokenizer(matter), seed=seed, shape=shape)


def prompt(one: Demonstration) -> tuple[ChatMessage, ...]:
    """As a policy worker would put it."""
    return (
        ChatMessage("system", (one.system,)),
        ChatMessage("user", (f"Task: {one.instruction}\n", one.screenshot)),
    )


def build_samples(folder: Path, shown: Sequence[Demonstration]) -> list[Sample]:
    """The demonstrations as the trainer would have them from the bus."""
    tokenizer = PromptTokenizer(folder)
    return sampled(
        folder,
        shown,
        [
            Generation(
                text=one.answer,
                finish_reason="stop",
                prompt_tokens=tuple(tokenizer.expanded_prompt(prompt(one))),
                completion_tokens=(*tokenizer.encode(one.answer), tokenizer.end_of_turn),
            )
            for one in shown
        ],
    )


def sampled(folder: Path, shown: Sequence[Demonstration], generations: Sequence[Generation]) -> list[Sample]:
    """Answers to the same pages as the trainer would have them."""
    builder = SampleBuilder(folder, cutoff_len=4096)
    patches = builder.patches([one.screenshot.data for one in shown])
    samples = []
    for index, (said, screenshot) in enumerate(zip(generations, patches, strict=True)):
        step = StepRequest(
            episode=EpisodeId("benchmark"),
            attempt=1,
            step=index,
            action=Action(kind=ActionKind.WAIT),
            parsed=True,
            response=said.text,
            prompt_tokens=said.prompt_tokens,
            completion_tokens=said.completion_tokens,
            logprobs=said.logprobs,
            versions=(VersionSpan(start=0, end=len(said.completion_tokens), version=PolicyVersion(0)),),
            temperature=said.temperature,
        )
        ref = RecordRef(EpisodeId("benchmark"), attempt=1, kind="act", step=index)
        samples.append(builder.build(ref, step, [screenshot]))
    return samples


def _instruction(word: str) -> str:
    return f'click the "{word}" button'


def _demonstration(draw_at: random.Random, width: int, height: int) -> Demonstration:
    word = draw_at.choice(_WORDS)
    left, top = draw_at.randrange(width - 50), draw_at.randrange(height - 20)
    image = Image.new("RGB", (width, height), (235, 238, 240))
    pen = ImageDraw.Draw(image)
    pen.rectangle([left, top, left + 50, top + 20], fill=tuple(draw_at.randrange(200) for _ in range(3)))
    pen.text((left + 6, top + 4), word, fill=(255, 255, 255))
    encoded = io.BytesIO()
    image.save(encoded, "JPEG", quality=80)
    point = np.array([left + 25, top + 10]) / np.array([width, height]) * 1000
    click = Action(kind=ActionKind.CLICK, point=(float(point[0]), float(point[1])))
    return Demonstration(
        system=system_prompt("vanilla"),
        instruction=_instruction(word),
        screenshot=Screenshot(data=encoded.getvalue(), media_type="image/jpeg", width=width, height=height),
        answer=render_action(click, thought=THOUGHT, grid=GRID),
    )
