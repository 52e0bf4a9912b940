"""Says what was evaluated and by which protocol: stands in every result, and in the folder of an evaluation's run."""

from pathlib import Path
from typing import Literal

import msgspec

from ops.archive.durable import write_whole

_FILE = "evaluation.json"


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was evaluated."""

    name: str
    kind: Literal["folder", "api"]
    sha256: str = ""
    """Of a folder: of its files' hashes."""
    base_url: str = ""
    """Of an endpoint."""

    @property
    def words(self) -> str:
        """With its hash."""
        if self.kind == "api":
            return f"{self.name} at {self.base_url}" if self.base_url else self.name
        return f"{self.name}, sha256 {self.sha256}" if self.sha256 else self.name


class ProtocolStamp(msgspec.Struct, frozen=True, kw_only=True):
    """The protocol that an evaluation was played by."""

    name: str
    sha256: str
    """Of all in it that decides figures, see `ops.analysis.evaluation.protocol`."""
    about: str = ""
    differs: tuple[str, ...] = ()
    """What is known to be otherwise where it was published."""

    @property
    def words(self) -> str:
        return f"{self.name}, sha256 {self.sha256}"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    model: Model
    protocol: ProtocolStamp | None = None

    @property
    def sentence(self) -> str:
        by = f", by the protocol {self.protocol.words}" if self.protocol else ""
        return f"An evaluation of {self.model.words}{by}."


def write_identity(folder: Path, identity: Identity) -> None:
    write_whole(folder / _FILE, msgspec.json.format(msgspec.json.encode(identity)) + b"\n")


def identity_in(folder: Path) -> Identity | None:
    """None: the folder is of no evaluation, or of one before there was this file."""
    try:
        return msgspec.json.decode((folder / _FILE).read_bytes(), type=Identity)
    except (OSError, msgspec.DecodeError):
        return None
