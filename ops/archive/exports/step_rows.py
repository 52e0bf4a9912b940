"""One row per step: the columns that the tabular formats share."""

from typing import Any

import msgspec
import pyarrow as pa

from ops.archive.exports.played import Played
from ops.archive.exports.prompts import Asked

MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
STEPS = pa.list_(pa.int64())
STEP_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("run", pa.string()),
    ("episode", pa.string()),
    ("group", pa.string()),
    ("task", pa.string()),
    ("split", pa.string()),
    ("website", pa.string()),
    ("domain", pa.string()),
    ("difficulty", pa.int64()),
    ("distribution", pa.string()),
    ("published_split", pa.string()),
    ("instruction", pa.string()),
    ("attempt", pa.int64()),
    ("step", pa.int64()),
    ("num_steps", pa.int64()),
    ("url", pa.string()),
    ("title", pa.string()),
    ("changed_nothing", pa.bool_()),
    ("action", pa.string()),
    ("further_actions", pa.string()),
    ("parsed", pa.bool_()),
    ("prompt", MESSAGES),
    ("prompt_screenshots", STEPS),
    ("response", pa.string()),
    ("thought", pa.string()),
    ("version", pa.int64()),
    ("outcome", pa.string()),
    ("rubric", pa.string()),
    ("verdict", pa.string()),
    ("reward", pa.float64()),
    ("step_reward", pa.float64()),
)


def step_row(played: Played, asked: Asked) -> dict[str, Any]:
    """Everything but the screenshot. Actions are JSON; `version` is the oldest policy version of the step.

    `prompt` has `<image>` for each of the screenshots of the steps `prompt_screenshots`; both are null where the prompt cannot
    be built again.
    """
    step = asked.step
    task, judgement = played.task, played.judgement
    request, observation = step.request, step.observation
    versions = [span.version for span in request.versions]
    return {
        "run": task.run,
        "episode": task.episode,
        "group": task.group,
        "task": task.task,
        "split": task.split.value,
        "website": task.website,
        "domain": task.domain,
        "difficulty": task.difficulty,
        "distribution": task.distribution,
        "published_split": task.published_split,
        "instruction": task.instruction,
        "attempt": request.attempt,
        "step": request.step,
        "num_steps": played.trajectory.num_steps,
        "url": observation.url,
        "title": observation.title,
        "changed_nothing": step.changed_nothing,
        "action": msgspec.json.encode(request.action).decode(),
        "further_actions": msgspec.json.encode(request.further).decode(),
        "parsed": request.parsed,
        "prompt": asked.prompt,
        "prompt_screenshots": list(asked.window.screenshots) if asked.window is not None else None,
        "response": request.response,
        "thought": request.thought,
        "version": min(versions, default=None),
        "outcome": played.trajectory.outcome.value,
        "rubric": judgement.rubric if judgement else None,
        "verdict": judgement.verdict.value if judgement else None,
        "reward": judgement.reward if judgement else None,
        "step_reward": _step_reward(played, request.step),
    }


def _step_reward(played: Played, step: int) -> float | None:
    rewards = played.judgement.step_rewards if played.judgement else ()
    return rewards[step] if step < len(rewards) else None
