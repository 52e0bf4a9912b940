"""The scripted oracle as a policy: tokenised demonstrations of the steps that the page itself points out."""

import sys
from pathlib import Path

import msgspec

from agents.action_space import ActionSpace
from agents.demonstration import demonstrated_action
from agents.describing import sentence
from agents.engine import Generation, GenerationRequest, Weightless
from agents.fitting import fitted
from agents.rendering import render_action
from agents.tokens import PromptTokenizer
from schemas.errors import PromptRefused
from schemas.messages import Action, Observation
from schemas.model_config import ModelConfig

_STANDARD = ActionSpace()
_INSTRUCT = ModelConfig()


class OracleEngine(Weightless):
    """Answers with what the model is to learn, in the tokens of the model that is to learn it. No log-probabilities, no
    policy version: nothing was sampled."""

    def __init__(
        self,
        folder: Path,
        *,
        model: ModelConfig = _INSTRUCT,
        thought: str = "Click the button.",
        grid: int = 10,
        space: ActionSpace = _STANDARD,
        max_prompt: int = sys.maxsize,
    ) -> None:
        """
        Args:
            thought: said before a click by coordinates into the oracle's box.
            max_prompt: tokens that a prompt may have.
            grid: that such clicks are rounded to; every other step is said to a whole number of the 0-1000 scale.
        """
        self._tokenizer = PromptTokenizer(folder)
        self._model = model
        self._thought = thought
        self._grid = grid
        self._space = space
        self._max_prompt = max_prompt

    async def generate(self, request: GenerationRequest) -> Generation:
        """Raises `PromptRefused` when the page offers no oracle: only tasks of a scripted suite can be demonstrated."""
        text = self._response(request.observation)
        request, _ = fitted(request, self._tokenizer, self._max_prompt)
        return Generation(
            text=text,
            finish_reason="stop",
            prompt_tokens=tuple(self._tokenizer.expanded_prompt(request.messages)),
            completion_tokens=(*self._tokenizer.encode(text), self._tokenizer.end_of_turn),
            num_dropped=request.num_dropped,
        )

    def _response(self, observation: Observation) -> str:
        action, model = demonstrated_action(observation, self._space.mode), self._model
        if observation.oracle_action is None and not self._space.marked:
            return render_action(action, thought=self._thought, model=model, grid=self._grid, space=self._space)
        try:
            return render_action(action, thought=_said(action, observation), model=model, space=self._space)
        except ValueError as error:
            raise PromptRefused(f"the oracle of {observation.url} cannot be followed: {error}") from error


def _said(action: Action, observation: Observation) -> str:
    whole = msgspec.structs.replace(action, point=_whole(action.point), end_point=_whole(action.end_point))
    return sentence(whole, observation.elements)


def _whole(point: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if point is None else (round(point[0]), round(point[1]))
