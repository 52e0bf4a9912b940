"""Examines a model that learns from demonstrations: how many of those kept out it would have played to the end.

Where an answer is right that was not demonstrated, any click into a box, answers are sampled and looked at. Elsewhere the
model's own probability of what was demonstrated is the expected figure, without the noise of a sample and without the time.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from torch import nn

from agents.action_space import GRID, ActionSpace
from agents.parsing import parse_response
from agents.tokens import PromptTokenizer
from schemas.config import Config
from schemas.messages import Action, Observation
from trainer.engine.training_engine import TrainEngine
from trainer.model.model_folder import suppressed_tokens
from trainer.model.pixel_scale import PixelScale, pixel_scale
from trainer.model.sampling import sample_completions
from trainer.samples import Sample


@dataclass(frozen=True)
class Box:
    """What has to be clicked, where a click into a box is all that a page asks for."""

    box: tuple[int, int, int, int]
    size: tuple[int, int]
    """Width and height of the screenshot, pixels."""

    def hit(self, action: Action) -> bool:
        if action.point is None:
            return False
        x, y = (value * side / GRID for value, side in zip(action.point, self.size, strict=True))
        left, top, width, height = self.box
        return left <= x < left + width and top <= y < top + height


def box_of(observation: Observation, space: ActionSpace) -> Box | None:
    """None: the step is right where it is the demonstrated one."""
    if space.marked or observation.oracle is None or observation.oracle_action is not None:
        return None
    return Box(observation.oracle, (observation.screenshot.width, observation.screenshot.height))


@dataclass(frozen=True)
class Demonstration:
    """One episode of the oracle's: a sample for every step, and what it is scored by."""

    page: str
    """Which of the family's it was, see `Task.subdomain`."""
    samples: tuple[Sample, ...]
    boxes: tuple[Box | None, ...]


class Examiner:
    """Scores the present weights on demonstrations that are kept out of training."""

    def __init__(self, base: Path, kept_out: Sequence[Demonstration], config: Config) -> None:
        self._kept_out = kept_out
        self._sampled = any(box is not None for demonstration in kept_out for box in demonstration.boxes)
        self._scale: PixelScale = pixel_scale(base)
        self._suppressed = suppressed_tokens(base)
        self._tokenizer = PromptTokenizer(base)
        self._space = ActionSpace.of(config.context_config)
        self._max_new_tokens = config.policy_config.max_new_tokens

    def success(self, engine: TrainEngine) -> dict[str, float]:
        """By page: the mean share of episodes whose every step is answered rightly at temperature 1."""
        right = self._by_sampling(engine.model, engine.num_updates) if self._sampled else self._by_probability(engine)
        pages = defaultdict[str, list[float]](list)
        for demonstration, share in zip(self._kept_out, right, strict=True):
            pages[demonstration.page].append(share)
        return {page: fmean(shares) for page, shares in pages.items()}

    def _by_probability(self, engine: TrainEngine) -> list[float]:
        """Every step's demonstrated answer, each on the page that the demonstration led to."""
        logprobs = iter(engine.completion_logprobs(self._samples))
        return [math.exp(sum(float(next(logprobs).sum()) for _ in shown.samples)) for shown in self._kept_out]

    def _by_sampling(self, model: nn.Module, seed: int) -> list[float]:
        answers = iter(
            sample_completions(
                model,
                self._samples,
                scale=self._scale,
                suppressed=self._suppressed,
                stop_tokens=[self._tokenizer.end_of_turn],
                max_new_tokens=self._max_new_tokens,
                seed=seed,
            )
        )
        right = [
            [self._is_right(sample, box, next(answers)) for sample, box in zip(shown.samples, shown.boxes, strict=True)]
            for shown in self._kept_out
        ]
        return [float(all(steps)) for steps in right]

    @property
    def _samples(self) -> list[Sample]:
        return [sample for demonstration in self._kept_out for sample in demonstration.samples]

    def _is_right(self, sample: Sample, box: Box | None, answer: Sequence[int]) -> bool:
        said = parse_response(self._tokenizer.decode(answer), self._space)
        if box is not None:
            return said.parsed and box.hit(said.action)
        shown = self._tokenizer.decode(sample.tokens[sample.num_prompt :].tolist())
        return said.parsed and said.action == parse_response(shown, self._space).action
