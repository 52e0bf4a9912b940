"""The scripted oracle as a policy: tokenised demonstrations of clicking into the box that the page itself points out."""

from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from agents.action_space import GRID, ActionSpace
from agents.engine import Generation, GenerationRequest
from agents.rendering import render_action
from agents.tokens import PromptTokenizer
from schemas.errors import PolicyError
from schemas.ids import PolicyVersion
from schemas.messages import Action, ActionKind, Observation

_STANDARD = ActionSpace()


class OracleEngine:
    """Answers with what the model is to learn, in the tokens of the model that is to learn it. No log-probabilities, no
    policy version: nothing was sampled."""

    takes_weights = False

    def __init__(
        self,
        folder: Path,
        *,
        prompt_version: Literal["vanilla", "complete"] = "vanilla",
        thought: str = "Click the button.",
        grid: int = 10,
        space: ActionSpace = _STANDARD,
    ) -> None:
        self._tokenizer = PromptTokenizer(folder)
        self._prompt_version = prompt_version
        self._thought = thought
        self._grid = grid
        self._space = space

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
        action = demonstrated_click(request.observation, self._space)
        text = render_action(
            action, thought=self._thought, prompt_version=self._prompt_version, grid=self._grid, space=self._space
        )
        return Generation(
            text=text,
            finish_reason="stop",
            prompt_tokens=tuple(self._tokenizer.expanded_prompt(request.messages)),
            completion_tokens=(*self._tokenizer.encode(text), self._tokenizer.end_of_turn),
        )

    async def load(self, folder: Path, version: PolicyVersion) -> None:
        raise AssertionError("an oracle has no weights")


def demonstrated_click(observation: Observation, space: ActionSpace) -> Action:
    """The click that the page's oracle points out, aimed in the way of `space`.

    Raises:
        PolicyError: the observation carries no box, or no marked element is there.
    """
    if space.marked:
        return Action(kind=ActionKind.CLICK, element=demonstrated_element(observation))
    return Action(kind=ActionKind.CLICK, point=demonstrated_point(observation))


def demonstrated_point(observation: Observation) -> tuple[float, float]:
    """The middle of the oracle's box, on the 0-1000 grid."""
    x, y, width, height = _box(observation)
    picture = observation.picture
    return (x + width / 2) / picture.width * GRID, (y + height / 2) / picture.height * GRID


def demonstrated_element(observation: Observation) -> int:
    """The smallest marked element around the middle of the oracle's box."""
    x, y, width, height = _box(observation)
    middle_x, middle_y = x + width / 2, y + height / 2
    around = [element for element in observation.elements if _holds(element.box, middle_x, middle_y)]
    if not around:
        raise PolicyError(f"no marked element of {observation.url} is where its oracle clicks: demonstrate with points")
    return min(around, key=lambda element: element.box[2] * element.box[3]).id


def _box(observation: Observation) -> tuple[int, int, int, int]:
    if observation.oracle is None:
        raise PolicyError(f"{observation.url} offers no scripted oracle: demonstrate only tasks of a suite that has one")
    return observation.oracle


def _holds(box: tuple[int, int, int, int], x: float, y: float) -> bool:
    left, top, width, height = box
    return left <= x <= left + width and top <= y <= top + height
