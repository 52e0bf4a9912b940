"""Rendered conversations as stored episodes: a chain of observations and answers, a trajectory, and a judgement of success.

Invariant: what is written is a function of the conversation, the model's tokens, and the run; so what is imported again is
there already.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from agents.action_space import ActionSpace
from agents.parsing import parse_response
from bus.codec import encode
from ops.archive.episodes import IMPORTED, StoredEpisode, StoredJudgement, StoredRecord
from ops.sft.conversation import Conversation
from ops.sft.findings import BadRecord
from ops.sft.images import blank
from ops.sft.rendering import RenderedTurn
from schemas.errors import MessageCorrupt
from schemas.ids import PolicyVersion, RunName, TaskId, episode_id, group_id
from schemas.messages import (
    AnyMessage,
    EpisodeStart,
    Judgement,
    Observation,
    Outcome,
    Split,
    StepRequest,
    Task,
    Trajectory,
    Verdict,
)
from schemas.text import valid

_ATTEMPT = 1
_LONGEST_NAME = 64
_LONGEST_LINE = 300
_REWARD = 1.0


@dataclass(frozen=True, kw_only=True)
class EpisodeMaker:
    """For one run."""

    run: RunName
    rubric: str
    """Under which every conversation counts as a success."""
    space: ActionSpace
    """Of the run: what its own reading makes of an answer is shown as the action."""
    max_calls: int = 1
    """Of an answer, as the run reads it."""

    def episode(self, conversation: Conversation, turns: Sequence[RenderedTurn]) -> StoredEpisode:
        """Raises `BadRecord` for what no message can hold."""
        task = self._task(conversation, turns)
        chain: list[tuple[str, AnyMessage]] = [
            ("task", task),
            (f"{_ATTEMPT}.start.0", EpisodeStart(episode=task.episode, attempt=_ATTEMPT, worker=IMPORTED)),
        ]
        for step, turn in enumerate(turns):
            chain.append((f"{_ATTEMPT}.obs.{step}", _observation(task, step, turn)))
            chain.append((f"{_ATTEMPT}.act.{step}", self._answer(task, step, turn)))
        trajectory = Trajectory(
            task=task,
            attempt=_ATTEMPT,
            outcome=Outcome.DONE,
            num_observations=len(turns),
            num_steps=len(turns),
            worker=IMPORTED,
        )
        judgement = Judgement(
            episode=task.episode,
            group=task.group,
            split=task.split,
            rubric=self.rubric,
            verdict=Verdict.SUCCESS,
            reward=_REWARD,
            trajectory=trajectory,
            judge=IMPORTED,
        )
        try:
            ended = encode(trajectory)
            return StoredEpisode(
                episode=task.episode,
                trajectory=trajectory,
                trajectory_data=ended,
                trajectory_time_s=0.0,
                records=(
                    *(StoredRecord(suffix, 0.0, encode(each)) for suffix, each in chain),
                    StoredRecord("done", 0.0, ended),
                ),
                judgements=(StoredJudgement(task.episode, task.split, self.rubric, 0.0, encode(judgement)),),
            )
        except MessageCorrupt as error:
            raise BadRecord(f"no episode can hold it: {error}") from error

    def _task(self, conversation: Conversation, turns: Sequence[RenderedTurn]) -> Task:
        about = conversation.about
        digest = digest_of(turns)
        task = TaskId(_named(about.task) or digest)
        # A demonstration: a policy that learns from reward in this run passes over it.
        group = group_id("sft", 0, TaskId(f"{task}-{digest}" if task != digest else task))
        asked = next((message.text for message in conversation.messages if message.role == "user"), "")
        return Task(
            run=self.run,
            episode=episode_id(group, 0),
            group=group,
            task=task,
            split=Split.TRAIN,
            index=0,
            policy_version=PolicyVersion(0),
            instruction=valid(about.instruction or asked),
            website=valid(about.website),
            max_steps=max(1, len(turns)),
            domain=valid(about.domain, _LONGEST_LINE),
            subdomain=valid(about.subdomain, _LONGEST_LINE),
            difficulty=about.difficulty,
            demonstrate=True,
        )

    def _answer(self, task: Task, step: int, turn: RenderedTurn) -> StepRequest:
        """It counts as read whatever its tools are: nothing is carried out."""
        read = parse_response(turn.answer, self.space, max_calls=self.max_calls)
        return StepRequest(
            episode=task.episode,
            attempt=_ATTEMPT,
            step=step,
            action=read.action,
            further=read.further,
            num_left_out=read.num_left_out,
            parsed=True,
            response=valid(turn.answer),
            thought=read.thought or ("" if read.parsed else valid(_called(turn.answer), _LONGEST_LINE)),
            prompt_tokens=turn.prompt_tokens,
            completion_tokens=turn.answer_tokens,
            screenshots=turn.shown,
            worker=IMPORTED,
        )


def _observation(task: Task, step: int, turn: RenderedTurn) -> Observation:
    return Observation(
        episode=task.episode, attempt=_ATTEMPT, step=step, screenshot=turn.seen or blank(), url=task.website, title=""
    )


def digest_of(turns: Sequence[RenderedTurn]) -> str:
    """Of everything that is trained on, so that two conversations have one name only where they are the same."""
    hashed = hashlib.sha256()
    for turn in turns:
        said = (turn.prompt_tokens, turn.answer_tokens, turn.shown)
        hashed.update(msgspec.msgpack.encode(said))
        hashed.update(hashlib.sha256(turn.seen.data if turn.seen else b"").digest())
    return hashed.hexdigest()[:16]


def _named(text: str) -> str:
    """As a token of a subject can hold it; a name that this shortens or changes ends with its hash."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:_LONGEST_NAME].strip("-")
    return name if name == text else f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".strip("-")


def _called(answer: str) -> str:
    """What an answer does that this run cannot read, in its own words."""
    said = answer.rpartition("</think>")[2]
    return " ".join(said.replace("<tool_call>", " ").replace("</tool_call>", " ").split())
