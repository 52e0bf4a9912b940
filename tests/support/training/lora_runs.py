"""What tests of adapters share."""

from dataclasses import replace
from pathlib import Path

from schemas.ids import EpisodeId, PolicyVersion
from schemas.lora_config import LANGUAGE_LAYERS, SCREENSHOT_LAYERS, LoraConfig
from schemas.messages import Action, ActionKind, StepRequest, VersionSpan
from tests.support.agents import tiny_models
from tests.support.training.trainer_world import PlainModel, completion, ref, settings
from trainer.engine.settings import EngineSettings
from trainer.episodes.sample_builder import SampleBuilder
from trainer.samples import Sample

LORA = LoraConfig(rank=4, alpha=8, targets=LANGUAGE_LAYERS + SCREENSHOT_LAYERS)


def adapted(stage: int = 1, lora: LoraConfig = LORA, *, seed: int = 0) -> EngineSettings:
    plain = settings(stage)
    return replace(plain, trainer=replace(plain.trainer, lora=lora, seed=seed))


def samples_of(base: Path, count: int) -> list[Sample]:
    """One screenshot each, which is that of the sample's step number."""
    builder, prompt = SampleBuilder(base, cutoff_len=200), PlainModel(base).prompt()
    return [
        builder.build(
            ref(seed),
            step_request(tuple(prompt), completion(seed, 4 + seed % 3)),
            builder.patches([tiny_models.screenshot(seed).data]),
        )
        for seed in range(count)
    ]


def step_request(prompt: tuple[int, ...], answer: tuple[int, ...], *, temperature: float = 1.0) -> StepRequest:
    return StepRequest(
        episode=EpisodeId("e"),
        attempt=1,
        step=0,
        action=Action(kind=ActionKind.WAIT),
        parsed=True,
        response="",
        prompt_tokens=prompt,
        completion_tokens=answer,
        logprobs=(-1.0,) * len(answer),
        versions=(VersionSpan(start=0, end=len(answer), version=PolicyVersion(0)),),
        temperature=temperature,
    )
