"""Writes an evaluation as Online-Mind2Web takes submissions: its schema `online-mind2web-v2`, a folder a task.

    <task_id>/result.json            schema_version, task, task_id, agent_final_answer, reference_length, action_history
    <task_id>/trajectory/0000.jpg    what was seen before each action

Source: OSU-NLP-Group/Online-Mind2Web, its submission schema v2 (May 2026): a step's screenshot, address, action and thought
stand together, the last step is the answer, and `reference_length` is of people.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import anyio.to_thread
import msgspec

from ops.analysis.evaluation.submitted_actions import FAILED, SUCCESS, action_words, completed
from ops.archive.durable import write_whole
from ops.archive.episodes import EpisodeSource
from ops.archive.exports.played import Played, PlayedStep, played
from ops.console.output_folder import make_output
from schemas.errors import ConfigurationError
from schemas.messages import Action, ActionEffect, ActionKind, ActionResult, Observation, Screenshot

SCHEMA = "online-mind2web-v2"
_SUFFIXES = {"image/jpeg": "jpg", "image/png": "png"}
_FIRST = "-m0"
"""What the name of an episode ends with that is a task's first."""


class SubmittedStep(msgspec.Struct, frozen=True, kw_only=True):
    step: int
    screenshot: str
    url: str | None
    action: str
    action_status: str | None
    thought: str | None


class SubmittedTask(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: str
    task: str
    task_id: str
    agent_final_answer: str | None
    reference_length: int
    action_history: tuple[SubmittedStep, ...]


@dataclass(frozen=True)
class Submitted:
    num_tasks: int
    without: tuple[str, ...]
    """Tasks of which nothing was ever seen, so that there is nothing to show."""


def require_room(out: Path) -> None:
    """Raises `ConfigurationError` where there is something already."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigurationError(f"{out} is there already: choose a folder that does not exist, or remove it")


async def write_submission(source: EpisodeSource, out: Path, lengths: Mapping[str, int]) -> Submitted:
    """The folder is there whole or not at all.

    Args:
        lengths: steps that people took, of every task that is submitted.
    """
    require_room(out)
    partial = make_output(out.with_name(f"{out.name}.{token_hex(4)}.partial"))
    try:
        written, left = 0, set(lengths)
        async for stored in source.episodes():
            task = str(stored.trajectory.task.task)
            if task in left and stored.episode.endswith(_FIRST) and _last_seen(one := played(stored, None)) is not None:
                await anyio.to_thread.run_sync(_write, partial / task, one, lengths[task])
                left.remove(task)
                written += 1
        await anyio.to_thread.run_sync(partial.replace, out)  # over an empty folder too
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Submitted(written, tuple(task for task in lengths if task in left))


def _write(folder: Path, one: Played, length: int) -> None:
    pictures = make_output(folder / "trajectory")
    steps = []
    for step, screenshot in submitted_steps(one):
        steps.append(step)
        write_whole(pictures / step.screenshot, screenshot.data, force=False)
    whole = SubmittedTask(
        schema_version=SCHEMA,
        task=one.task.instruction,
        task_id=str(one.task.task),
        agent_final_answer=one.trajectory.answer or None,
        reference_length=length,
        action_history=tuple(steps),
    )
    write_whole(folder / "result.json", msgspec.json.format(msgspec.json.encode(whole)) + b"\n", force=False)


def submitted_steps(one: Played) -> Iterator[tuple[SubmittedStep, Screenshot]]:
    """Every action with what was seen before it; then the answer, with what was seen last.

    Actions of one answer stand behind each other with its thought, and with the one screenshot that they were decided on.
    """
    seen = {step.observation.step: step.observation for step in one.steps}
    if one.last_seen is not None:
        seen[one.last_seen.step] = one.last_seen
    number, thought = 0, None
    for step in one.steps:
        results = _results(step, seen.get(step.request.step + 1))
        for action, result in zip(step.request.actions, results, strict=True):
            if action.kind is ActionKind.ANSWER:
                thought = step.request.thought or None
                continue
            yield _submitted(number, step, action, result), step.observation.screenshot
            number += 1
    last = _last_seen(one)
    assert last is not None
    end = SubmittedStep(
        step=number,
        screenshot=_picture(number, last.screenshot),
        url=last.url or None,
        action=completed(one.trajectory.answer),
        action_status=None,
        thought=thought,
    )
    yield end, last.screenshot


@dataclass(frozen=True, slots=True)
class _Result:
    """Of one action."""

    hit: str = ""
    status: str | None = None


def _results(step: PlayedStep, seen_then: Observation | None) -> tuple[_Result, ...]:
    """What each action of an answer came to. The effect is that of the last."""
    known = tuple(map(_earlier, seen_then.earlier_results)) if seen_then else ()
    unknown = (_Result(),) * len(step.request.further)
    # An action that nobody saw the effect of had no observable one.
    changed = seen_then is not None and seen_then.effect is ActionEffect.CHANGED
    last = _Result(seen_then.hit if seen_then else "", SUCCESS if changed else FAILED)
    return (*(*known, *unknown)[: len(unknown)], last)


def _earlier(result: ActionResult) -> _Result:
    """Of an action before the last, whose effect nobody looked at. What is said of one that reached something is no failure: a
    window that it opened, a dialog."""
    failed = result.error and not result.hit
    return _Result(result.hit, SUCCESS if result.changes else FAILED if failed else None)


def _submitted(number: int, step: PlayedStep, action: Action, result: _Result) -> SubmittedStep:
    observation = step.observation
    # Waiting and reading have no effect to be had.
    status = None if action.kind in (ActionKind.WAIT, ActionKind.READ_PAGE) else result.status
    goes_to = action.text if action.kind in (ActionKind.NAVIGATE, ActionKind.NEW_TAB) else ""
    return SubmittedStep(
        step=number,
        screenshot=_picture(number, observation.screenshot),
        url=goes_to or observation.url or None,
        action=action_words(action, observation, hit=result.hit, status=status),
        action_status=status,
        thought=step.request.thought or None,
    )


def _last_seen(one: Played) -> Observation | None:
    return one.last_seen or (one.steps[-1].observation if one.steps else None)


def _picture(number: int, screenshot: Screenshot) -> str:
    return f"{number:04d}.{_SUFFIXES.get(screenshot.media_type, 'png')}"
