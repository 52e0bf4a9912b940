"""Which message belongs under which subject: what a subject says of its message, the message says too. Pure.

So the key that may write a subject decides who may say what, and nobody writes another kind of record, or of another episode,
under it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bus.subjects import site_token
from schemas.messages import (
    AnyMessage,
    Checkpoint,
    DeadLetter,
    EpisodeCancel,
    EpisodeStart,
    Heartbeat,
    JudgeCall,
    Judgement,
    LetterResent,
    Observation,
    Position,
    SiteBlock,
    StepPhase,
    StepRequest,
    StepWake,
    Task,
    Trajectory,
    WeightChunk,
)

_CHAIN_LENGTHS = (3, 5)
"""Tokens of `<shard>.<episode>.<kind>`, and of `<shard>.<episode>.<attempt>.<kind>.<step>`."""
_CHAIN: Mapping[str, type[AnyMessage]] = {
    "task": Task,
    "start": EpisodeStart,
    "obs": Observation,
    "act": StepRequest,
    "done": Trajectory,
}


def misplaced(subject: str, message: AnyMessage) -> str:
    """Why a message cannot stand under a subject, for people; empty: it can, or the subject is none of a run's."""
    _, _, behind_run = subject.partition(".")
    family, *tokens = behind_run.split(".")
    if family in ("ep", "live") and len(tokens) in _CHAIN_LENGTHS:
        return _misplaced_in_chain(tokens, message)
    named = _NAMED.get(family)
    if named is None:
        return ""
    kind, tokens_of = named
    if not isinstance(message, kind):
        return f"a {type(message).__name__} where a {kind.__name__} belongs"
    return _unlike(tokens, tokens_of(message))


def _misplaced_in_chain(tokens: list[str], message: AnyMessage) -> str:
    kind = _CHAIN.get(tokens[2] if len(tokens) == 3 else tokens[3])
    if kind is None or not isinstance(message, kind):
        return f"a {type(message).__name__} where a {kind.__name__ if kind else 'record of no known kind'} belongs"
    match message:
        case Observation() | StepRequest():
            return _unlike([*tokens[1:3], tokens[4]], [message.episode, str(message.attempt), str(message.step)])
        case EpisodeStart():
            return _unlike(tokens[1:3], [message.episode, str(message.attempt)])
        case Task() | Trajectory():
            return _unlike(tokens[1:2], [message.episode])
        case _:
            return ""


def _unlike(tokens: list[str], said: list[str]) -> str:
    """`said`: the last tokens, as the message says them."""
    return "" if tokens[len(tokens) - len(said) :] == said else f"it says that it belongs under {'.'.join(said)}"


_NAMED: Mapping[str, tuple[type[Any], Callable[[Any], list[str]]]] = {
    "task": (Task, lambda _: []),
    "step": (StepWake, lambda _: []),
    "wake": (StepWake, lambda _: []),
    "phase": (StepPhase, lambda phase: [phase.worker]),
    "trajectory": (Trajectory, lambda played: [played.task.split.value, played.episode]),
    "judged": (Judgement, lambda judged: [judged.split.value, judged.rubric, judged.episode]),
    "call": (JudgeCall, lambda call: [call.rubric, call.episode, call.question, str(call.answer)]),
    "blocked": (SiteBlock, lambda block: [site_token(block.site)]),
    "checkpoint": (Checkpoint, lambda checkpoint: [str(checkpoint.version)]),
    "weights": (
        WeightChunk,
        lambda chunk: [chunk.file_sha256, f"{chunk.begin}-{chunk.begin + len(chunk.data)}"],
    ),
    "heartbeat": (Heartbeat, lambda beat: [beat.role.value, beat.worker]),
    "cancel": (EpisodeCancel, lambda _: []),
    "position": (Position, lambda position: [position.name]),
    "dead": (DeadLetter, lambda letter: [letter.stream]),
    "resent": (LetterResent, lambda resent: [str(resent.letter_seq)]),
}
"""By the token behind the run: what stands there, and the subject's last tokens as it says them."""
