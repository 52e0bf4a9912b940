"""The prompts of an episode's steps, built again as their policy was asked, with `<image>` where a screenshot was shown."""

from collections.abc import Iterator
from dataclasses import dataclass

from agents.context import Round, Window, Windows
from agents.engine import ChatMessage
from ops.archive.episodes import IMPORTED
from ops.archive.exports.played import Played, PlayedStep
from schemas.context_config import ContextConfig
from schemas.messages import Screenshot
from schemas.model_config import ModelConfig

IMAGE = "<image>"
PLACEHOLDERS = (IMAGE, "<video>", "<audio>")
"""What readers replace wherever it stands; text of a page must not spell one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A step, and what its policy was asked."""

    step: PlayedStep
    window: Window | None
    """None: it cannot be built again."""
    reason: str = ""
    """Why not, where another setting or format would help; empty where records before it are gone."""

    @property
    def prompt(self) -> list[dict[str, str]] | None:
        """Role and content of every message."""
        if self.window is None:
            return None
        return [{"role": message.role, "content": _content(message)} for message in self.window.messages]


def prompts(played: Played, context: ContextConfig, model: ModelConfig) -> Iterator[Asked]:
    """Of every step, in order, as these settings build them."""
    rounds: list[Round] = []
    for number, step in enumerate(played.steps):
        if step.request.step != number:
            # A record before it is gone, and with it the prompts from here on.
            yield from (Asked(later, None) for later in played.steps[number:])
            return
        yield _asked(played, rounds, step, context, model)
        rounds.append(Round(step.observation, step.request))


def _asked(played: Played, rounds: list[Round], step: PlayedStep, context: ContextConfig, model: ModelConfig) -> Asked:
    if step.request.worker == IMPORTED:
        reason = "is an imported conversation, whose prompts no run built: export it as parquet, hf or jsonl, or leave it out"
        return Asked(step, None, f"episode {step.request.episode} {reason} with another --rubric")
    window = Windows(played.task, tuple(rounds), step.observation, context, model).asked_with(step.request)
    if step.request.screenshots and step.request.screenshots != window.screenshots:
        return Asked(
            step,
            None,
            f"step {step.request.step} of episode {step.request.episode} was asked with the screenshots of steps "
            f"{step.request.screenshots}, this prompt would show {window.screenshots}: give the run's own context_config",
        )
    return Asked(step, window)


def _content(message: ChatMessage) -> str:
    return "".join(IMAGE if isinstance(part, Screenshot) else _harmless(part) for part in message.content)


def _harmless(text: str) -> str:
    for placeholder in PLACEHOLDERS:
        text = text.replace(placeholder, placeholder.replace("<", "< "))
    return text
