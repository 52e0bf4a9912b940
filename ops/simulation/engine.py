"""A policy without a model: readable answers after a drawn time, with tokens and log-probabilities to train on."""

from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from agents.action_space import GRID
from agents.engine import Generation, GenerationRequest
from agents.rendering import render_action
from ops.simulation.draws import generator, spread
from schemas.errors import CheckpointCorrupt
from schemas.ids import PolicyVersion
from schemas.messages import Action, ActionKind, VersionSpan
from schemas.simulation_config import SimulationConfig

_NUM_PROMPT, _NUM_COMPLETION = 24, 12
_VOCABULARY = 1000


class SimulatedEngine:
    """Clicks somewhere; what it says is a function of the seed, the episode and the step. It stands still while it loads."""

    takes_weights = True

    def __init__(self, config: SimulationConfig, broken: Path | None = None) -> None:
        """`broken`: while this file is there, no version can be loaded."""
        self._config = config
        self._broken = broken
        self._version = PolicyVersion(0)
        self._stood_still_s = 0.0
        """In all, up to the end of the load that goes on."""
        self._stands_until = 0.0

    @property
    def version(self) -> PolicyVersion:
        return self._version

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def generate(self, request: GenerationRequest) -> Generation:
        observation = request.observation
        draw = generator(self._config.seed, observation.episode, observation.step)
        if self._config.policy_latency_ms:
            await self._work(spread(draw, self._config.policy_latency_ms, self._config.tail) / 1000.0)
        action = Action(kind=ActionKind.CLICK, point=(draw.uniform(0, GRID), draw.uniform(0, GRID)))
        return Generation(
            text=render_action(action, thought="Click somewhere."),
            finish_reason="stop",
            prompt_tokens=tuple(draw.choices(range(_VOCABULARY), k=_NUM_PROMPT)),
            completion_tokens=tuple(draw.choices(range(_VOCABULARY), k=_NUM_COMPLETION)),
            logprobs=tuple(-draw.random() for _ in range(_NUM_COMPLETION)),
            versions=(VersionSpan(start=0, end=_NUM_COMPLETION, version=self._version),),
        )

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        if self._broken is not None and self._broken.exists():
            raise CheckpointCorrupt(f"{folder.name} does not match its hash, as long as {self._broken} is there")
        seconds = self._config.load_latency_ms / 1000.0
        self._stood_still_s += seconds
        self._stands_until = anyio.current_time() + seconds
        await anyio.sleep(seconds)
        self._version = version

    async def _work(self, seconds: float) -> None:
        """So long, and whatever the engine stands still meanwhile."""
        left = seconds + max(0.0, self._stands_until - anyio.current_time())
        while left > 0:
            before = self._stood_still_s
            await anyio.sleep(left)
            left = self._stood_still_s - before
