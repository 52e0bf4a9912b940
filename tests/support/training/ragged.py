"""Random ragged batches: groups of episodes of unequal length, and the sequences of an optimizer step."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from schemas.ids import EpisodeId, GroupId
from schemas.objective_config import Aggregation, ObjectiveConfig
from tests.support.training.loss_oracles import Sequence64
from tests.support.training.trainer_world import ref
from trainer.advantages import EpisodeRewards
from trainer.items import Item, targets_of
from trainer.model.batches import collate
from trainer.model.pixel_scale import PixelScale
from trainer.objective.aggregation import token_weights
from trainer.samples import Sample
from trainer.token_losses import TokenTargets

_NO_SCREENSHOTS = PixelScale(torch.zeros(3), torch.ones(3), 2)
TARGETS = ("advantages", "behaviour", "proximal", "reference", "values", "returns", "staleness")


def episodes(seed: int) -> list[EpisodeRewards]:
    """Some groups of one to five episodes of up to four steps; some without a trained step, some greedy."""
    rng, pages = np.random.default_rng(seed), np.random.default_rng((seed, 1))
    found = []
    for name in range(rng.integers(1, 5)):
        for _ in range(rng.integers(1, 6)):
            lengths = rng.integers(1, 6, rng.integers(0, 5))
            rewards = tuple(rng.normal(size=length) for length in lengths)
            found.append(
                EpisodeRewards(
                    group=GroupId(f"g{name}"),
                    reward=float(rng.integers(0, 2)),
                    rewards=rewards,
                    num_steps=len(lengths) + int(rng.integers(0, 3)),
                    values=tuple(rng.normal(size=length) for length in lengths),
                    greedy=bool(rng.random() < 0.2),
                    anchors=tuple(f"p{page}" for page in pages.integers(0, 3, len(lengths))),
                    success=bool(pages.random() < 0.5),
                    cut_off=bool(pages.random() < 0.5),
                    kind=f"k{name % 2}",
                )
            )
    return [found[index] for index in rng.permutation(len(found))]


def sequences(seed: int, *, num: int | None = None) -> list[Sequence64]:
    """Up to eight sequences of up to nine tokens, some of them not trained on. The numbers are float32's."""
    rng, ages = np.random.default_rng(seed), np.random.default_rng((seed, 1))

    def one(length: int) -> Sequence64:
        mask = (rng.random(length) < 0.8) * float(rng.random() < 0.9)
        behaviour = rng.normal(-1.5, 0.5, length)
        proximal = behaviour + rng.normal(0.0, 0.6, length)
        drawn = {
            "mask": mask,
            "logprobs": proximal + rng.normal(0.0, 0.3, length),
            "entropies": rng.random(length) * 2,
            "advantages": rng.normal(size=length) * (rng.random(length) < 0.9),
            "behaviour": behaviour,
            "proximal": proximal,
            "reference": behaviour + rng.normal(0.0, 0.5, length),
            "values": rng.normal(size=length),
            "returns": rng.normal(size=length),
            "staleness": ages.integers(0, 4, length),
        }
        return Sequence64(**{name: array.astype(np.float32).astype(np.float64) for name, array in drawn.items()})

    lengths = rng.integers(1, 10, num or int(rng.integers(1, 9)))
    return [replace(one(int(length)), episode=f"e{index % 3}") for index, length in enumerate(lengths)]


def items(found: Sequence[Sequence64], mode: Aggregation = "token-mean", scale_factor: float = 1024.0) -> list[Item]:
    """As a learner makes them, with prompts of unequal length and without screenshots."""
    weights = token_weights(
        [s.mask for s in found], mode, scale_factor=scale_factor, episodes=[EpisodeId(s.episode) for s in found]
    )
    return [
        Item(text_sample(index, len(s.mask)), targets_of(text_sample(index, len(s.mask)), weights=share, **_targets(s)))
        for index, (s, share) in enumerate(zip(found, weights, strict=True))
    ]


def _targets(s: Sequence64) -> dict[str, np.ndarray]:
    return {name: getattr(s, name) for name in TARGETS}


def text_sample(index: int, num_completion: int) -> Sample:
    length = 2 + index % 3 + num_completion
    return Sample(
        ref=ref(index),
        tokens=np.arange(length, dtype=np.int32),
        num_prompt=length - num_completion,
        positions=np.arange(length, dtype=np.int32)[None].repeat(3, axis=0),
        logprobs=np.zeros(num_completion, dtype=np.float32),
        temperature=1.0,
        screenshots=(),
        versions=np.zeros(num_completion, dtype=np.int32),
    )


def targets(part: Sequence[Item]) -> TokenTargets:
    """Those of one micro-batch, as float64."""
    whole = collate(part, _NO_SCREENSHOTS)
    doubled = {name: getattr(whole.targets, name).double() for name in (*TARGETS, "weights")}
    return replace(whole.targets, **doubled)


def concatenated(found: Sequence[Sequence64], name: str) -> np.ndarray:
    return np.concatenate([getattr(s, name) for s in found])


def with_logprobs(found: Sequence[Sequence64], logprobs: np.ndarray) -> list[Sequence64]:
    ends = np.cumsum([len(s.mask) for s in found])[:-1]
    return [replace(s, logprobs=part) for s, part in zip(found, np.split(logprobs, ends), strict=True)]


def objective(loss: str, **changes: object) -> ObjectiveConfig:
    """A valid configuration with this loss."""
    estimator: dict[str, object] = {} if loss.endswith("cloning") else {"adv_estimator": "grpo", "group_size": 2}
    return ObjectiveConfig(**{"loss_type": loss, **estimator, **changes})  # type: ignore[arg-type]
