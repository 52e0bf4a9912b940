"""Checks that a message belongs under its subject: what a subject says of its message, the message says too. Pure.

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
    Fault,
    FeederMemory,
    Heartbeat,
    JudgeCall,
    Judgement,
    JudgeSpending,
    LetterResent,
    NetworkRecord,
    Observation,
    Position,
    ServedVersion,
    SiteBlock,
    SiteTurn,
    StepHeld,
    StepPhase,
    StepRefusal,
    StepRequest,
    StepWake,
    Task,
    TaskResults,
    Trajectory,
    WeightChunk,
)

_CHAIN_LENGTHS = (3, 5)
"""Tokens of `<shard>.<episode>.<kind>`, and of `<shard>.<episode>.<attempt>.<kind>.<step>`."""
_CHAIN: Mapping[str, tuple[type[AnyMessage], ...]] = {
    "task": (Task,),
    "start": (EpisodeStart,),
    "obs": (Observation,),
    "act": (StepRequest, StepRefusal),
    "held": (StepHeld,),
    "net": (NetworkRecord,),
    "done": (Trajectory,),
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
    tokens_of = named.get(type(message))
    if tokens_of is None:
        return _unexpected(message, tuple(named))
    return _unlike(tokens, tokens_of(message))


def _misplaced_in_chain(tokens: list[str], message: AnyMessage) -> str:
    kinds = _CHAIN.get(tokens[2] if len(tokens) == 3 else tokens[3], ())
    if not isinstance(message, kinds):
        return _unexpected(message, kinds)
    match message:
        case Observation() | StepRequest() | StepRefusal() | StepHeld():
            return _unlike([*tokens[1:3], tokens[4]], [message.episode, str(message.attempt), str(message.step)])
        case EpisodeStart() | NetworkRecord():
            return _unlike(tokens[1:3], [message.episode, str(message.attempt)])
        case Task() | Trajectory():
            return _unlike(tokens[1:2], [message.episode])
        case _:
            return ""


def _unexpected(message: AnyMessage, kinds: tuple[type[AnyMessage], ...]) -> str:
    wanted = " or a ".join(kind.__name__ for kind in kinds) or "record of no known kind"
    return f"a {type(message).__name__} where a {wanted} belongs"


def _unlike(tokens: list[str], said: list[str]) -> str:
    """`said`: the last tokens, as the message says them."""
    return "" if tokens[len(tokens) - len(said) :] == said else f"it says that it belongs under {'.'.join(said)}"


_NAMED: Mapping[str, Mapping[type[Any], Callable[[Any], list[str]]]] = {
    "task": {Task: lambda _: []},
    "step": {StepWake: lambda _: []},
    "wake": {StepWake: lambda _: [], StepHeld: lambda held: [held.worker]},
    "phase": {StepPhase: lambda phase: [phase.worker]},
    "trajectory": {Trajectory: lambda played: [played.task.split.value, played.episode]},
    "judged": {Judgement: lambda judged: [judged.split.value, judged.rubric, judged.episode]},
    "call": {JudgeCall: lambda call: [call.rubric, call.episode, call.question, str(call.answer)]},
    "spent": {JudgeSpending: lambda _: []},
    "blocked": {SiteBlock: lambda block: [site_token(block.site)]},
    "turn": {SiteTurn: lambda _: []},
    "checkpoint": {Checkpoint: lambda checkpoint: [str(checkpoint.version)]},
    "weights": {WeightChunk: lambda chunk: [chunk.file_sha256, f"{chunk.begin}-{chunk.begin + len(chunk.data)}"]},
    "served": {ServedVersion: lambda served: [served.worker]},
    "heartbeat": {Heartbeat: lambda beat: [beat.role.value, beat.worker]},
    "cancel": {EpisodeCancel: lambda _: []},
    "position": {Position: lambda position: [position.name]},
    "feeding": {FeederMemory: lambda _: ["state"], TaskResults: lambda results: ["results", str(results.part)]},
    "dead": {DeadLetter: lambda letter: [letter.stream]},
    "resent": {LetterResent: lambda resent: [str(resent.letter_seq)]},
    "fault": {Fault: lambda fault: [str(fault.number)]},
}
"""By the token behind the run: what stands there, and the subject's last tokens as it says them."""
