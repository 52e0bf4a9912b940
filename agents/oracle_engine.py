"""The scripted oracle as a policy: tokenised demonstrations of the steps that the page itself points out."""

from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from agents.demonstration import Mode, demonstrated_action
from agents.engine import Generation, GenerationRequest
from agents.parsing import render_action
from agents.tokens import PromptTokenizer
from schemas.ids import PolicyVersion
from schemas.messages import Action, Observation


class OracleEngine:
    """Answers with what the model is to learn, in the tokens of the model that is to learn it. No log-probabilities, no
    policy version: nothing was sampled."""

    takes_weights = False

    def __init__(
        self,
        folder: Path,
        *,
        prompt_version: Literal["vanilla", "complete"] = "vanilla",
        interaction_mode: Mode = "coordinates",
        thought: str = "Click the button.",
        grid: int = 10,
    ) -> None:
        """
        Args:
            thought: said before a click into the oracle's box.
            grid: that such clicks are rounded to; every other step is said to a whole number of the 0-1000 scale.
        """
        self._tokenizer = PromptTokenizer(folder)
        self._prompt_version = prompt_version
        self._interaction_mode = interaction_mode
        self._thought = thought
        self._grid = grid

    @property
    def version(self) -> PolicyVersion:
        return PolicyVersion(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def generate(self, request: GenerationRequest) -> Generation:
        """Raises `PolicyError` when the page offers no oracle: only tasks of a scripted suite can be demonstrated."""
        text = self._response(request.observation)
        return Generation(
            text=text,
            finish_reason="stop",
            prompt_tokens=tuple(self._tokenizer.expanded_prompt(request.messages)),
            completion_tokens=(*self._tokenizer.encode(text), self._tokenizer.end_of_turn),
        )

    def _response(self, observation: Observation) -> str:
        action, version = demonstrated_action(observation, self._interaction_mode), self._prompt_version
        if observation.oracle_action is None:
            return render_action(action, thought=self._thought, prompt_version=version, grid=self._grid)
        return render_action(action, thought=_said(action), prompt_version=version)

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        raise AssertionError("an oracle has no weights")


def _said(action: Action) -> str:
    return f"{action.kind.value.replace('_', ' ').capitalize()} {action.text}".strip() + "."
