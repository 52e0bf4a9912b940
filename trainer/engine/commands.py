"""Encodes what rank 0 tells the other ranks as MessagePack: numbers and raw arrays, never pickled objects."""

import enum
from dataclasses import dataclass, fields

import msgspec
import numpy as np

from schemas.messages import RecordRef
from trainer.engine.dealing import Share
from trainer.items import NUM_TARGETS, Item, Targets
from trainer.samples import Patches, Sample
from trainer.truncation import Truncation


@dataclass(frozen=True, eq=False)
class OpenCommand:
    """Load the model in this folder."""

    folder: str
    resume: str
    """Folder of the version whose optimizer's state is gone on with; empty: of none."""
    base: str
    """Folder of the run's version 0."""
    num_updates: int = 0
    """Optimizer steps behind the model, where the optimizer's state is not its own."""


@dataclass(frozen=True, eq=False)
class TrainCommand:
    """Make one optimizer step of the policy, or of the critic."""

    share: Share
    learning_rate: float
    critic: bool = False


class Model(enum.Enum):
    """Whose forward pass is meant."""

    POLICY = "policy"
    REFERENCE = "reference"
    CRITIC = "critic"


@dataclass(frozen=True, eq=False)
class EvaluateCommand:
    """Say what the model says of each completion token: log-probabilities, or the critic's values."""

    model: Model
    share: Share
    truncation: Truncation


@dataclass(frozen=True, eq=False)
class WriteCommand:
    """Write your part of the state into this folder; unless it shall be `whole`, what policies load."""

    folder: str
    whole: bool


@dataclass(frozen=True, eq=False)
class StopCommand:
    pass


Command = OpenCommand | TrainCommand | EvaluateCommand | WriteCommand | StopCommand


class _Screenshot(msgspec.Struct):
    raw: bytes
    num_rows: int
    """Of `raw`: patches, or tiles."""
    grid: tuple[int, int, int]


class _Sample(msgspec.Struct):
    ref: RecordRef
    tokens: bytes
    num_prompt: int
    positions: bytes
    logprobs: bytes
    temperature: float
    screenshots: list[_Screenshot]
    versions: bytes
    targets: bytes
    """float32, (targets, completion)."""


class _Wire(msgspec.Struct):
    kind: str
    parts: list[list[_Sample]] = []
    numbers: list[float] = []
    text: str = ""
    base: str = ""
    resume: str = ""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Wire)


def encode(command: Command) -> bytes:
    match command:
        case OpenCommand(folder, resume, base, num_updates):
            wire = _Wire("open", numbers=[float(num_updates)], text=folder, base=base, resume=resume)
        case TrainCommand(share, rate, critic):
            wire = _Wire("train", parts=_pack_share(share), numbers=[rate, float(critic)])
        case EvaluateCommand(model, share, cut):
            numbers = [float(cut.top_k), cut.top_p, cut.min_p]
            wire = _Wire("evaluate", parts=_pack_share(share), numbers=numbers, text=model.value)
        case WriteCommand(folder, whole):
            wire = _Wire("write", numbers=[float(whole)], text=folder)
        case StopCommand():
            wire = _Wire("stop")
    return _encoder.encode(wire)


def decode(data: bytes) -> Command:
    wire = _decoder.decode(data)
    match wire.kind:
        case "open":
            return OpenCommand(wire.text, wire.resume, wire.base, int(wire.numbers[0]))
        case "train":
            rate, critic = wire.numbers
            return TrainCommand(_unpack_share(wire), rate, bool(critic))
        case "evaluate":
            top_k, top_p, min_p = wire.numbers
            return EvaluateCommand(Model(wire.text), _unpack_share(wire), Truncation(int(top_k), top_p, min_p))
        case "write":
            return WriteCommand(wire.text, bool(wire.numbers[0]))
        case _:
            return StopCommand()


def _pack_share(share: Share) -> list[list[_Sample]]:
    return [[_pack(item.sample, item.targets) for item in part] for part in share]


def _unpack_share(wire: _Wire) -> Share:
    return [[_unpack_item(sample) for sample in part] for part in wire.parts]


def _pack(sample: Sample, targets: Targets) -> _Sample:
    return _Sample(
        ref=sample.ref,
        tokens=sample.tokens.tobytes(),
        num_prompt=sample.num_prompt,
        positions=sample.positions.tobytes(),
        logprobs=sample.logprobs.tobytes(),
        temperature=sample.temperature,
        screenshots=[_Screenshot(each.raw.tobytes(), len(each.raw), each.grid) for each in sample.screenshots],
        versions=sample.versions.tobytes(),
        targets=np.stack([getattr(targets, field.name) for field in fields(targets)]).tobytes(),
    )


def _unpack_item(wire: _Sample) -> Item:
    return Item(_unpack(wire), Targets(*np.frombuffer(wire.targets, dtype=np.float32).reshape(NUM_TARGETS, -1)))


def _unpack(wire: _Sample) -> Sample:
    tokens = np.frombuffer(wire.tokens, dtype=np.int32)
    return Sample(
        ref=wire.ref,
        tokens=tokens,
        num_prompt=wire.num_prompt,
        positions=np.frombuffer(wire.positions, dtype=np.int32).reshape(-1, len(tokens)),
        logprobs=np.frombuffer(wire.logprobs, dtype=np.float32),
        temperature=wire.temperature,
        screenshots=tuple(_screenshot(screenshot) for screenshot in wire.screenshots),
        versions=np.frombuffer(wire.versions, dtype=np.int32),
    )


def _screenshot(wire: _Screenshot) -> Patches:
    return Patches(np.frombuffer(wire.raw, dtype=np.uint8).reshape(wire.num_rows, -1), wire.grid)
