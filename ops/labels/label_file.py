"""Files of labels: JSON lines, each with an episode and whether it is a success, as a person found."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random
from threading import Lock

import anyio
import msgspec

from ops.archive.durable import write_whole
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId
from schemas.messages import Trajectory

_EXAMPLE = '{"episode": "train-r0000-t1-m0", "success": true}'


class Label(msgspec.Struct, frozen=True):
    """One line. What else stands there is for whoever fills it in."""

    episode: EpisodeId
    success: bool | None
    """None: nobody has said yet."""
    note: str = ""
    instruction: str = ""
    """As the template has it."""


class LabelFile:
    """A file that is filled in one label at a time: whatever else stands there stays, what others write meanwhile too."""

    def __init__(self, path: Path) -> None:
        """Raises `ConfigurationError` as `read_labels` does."""
        self.path = path
        self._writing = Lock()
        read_labels(path)

    def labels(self) -> tuple[Label, ...]:
        """In the order of the file. Raises `ConfigurationError`."""
        return tuple(read_labels(self.path).values())

    def put(self, episode: EpisodeId, success: bool | None, note: str) -> None:
        """Says of an episode of the file what a person found; threads may do so at once.

        Raises:
            ConfigurationError: the file has no such episode, or cannot be read or written.
        """
        with self._writing:
            if episode not in read_labels(self.path):
                raise ConfigurationError(f"{self.path.name} has no line for the episode {episode}")
            try:
                lines = [_filled_in(line, episode, success, note) for _, line in lines_of(self.path.read_bytes())]
                write_whole(self.path, b"".join(line + b"\n" for line in lines))
            except OSError as error:
                raise ConfigurationError(f"{self.path} cannot be written ({error.strerror})") from error


def read_labels(path: Path) -> dict[EpisodeId, Label]:
    """By episode, in the order of the file.

    Raises:
        ConfigurationError: the file cannot be read, or a line is wrong; names the line and what to write.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"the labels {path} cannot be read ({error}): write a file of JSON lines") from error
    labels: dict[EpisodeId, Label] = {}
    first: dict[EpisodeId, int] = {}
    for number, line in lines_of(text):
        label = _label(line, f"{path}:{number}")
        if label.episode in labels:
            raise ConfigurationError(
                f"{path}:{number}: {label.episode} is labelled in line {first[label.episode]} already: keep one of the two"
            )
        labels[label.episode], first[label.episode] = label, number
    return labels


def lines_of(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Those that are not empty, with their numbers from 1. A byte ends a line: texts in JSON may hold U+2028 and such."""
    return ((number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip())


def _filled_in(line: bytes, episode: EpisodeId, success: bool | None, note: str) -> bytes:
    written = msgspec.json.decode(line, type=dict[str, object])
    if written["episode"] != episode:
        return line
    return msgspec.json.encode(written | {"success": success} | ({"note": note} if note or "note" in written else {}))


def _label(line: bytes, where: str) -> Label:
    try:
        return msgspec.json.decode(line, type=Label)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{where}: {error}: write a line such as {_EXAMPLE} (or false, or null)") from error


async def write_template(trajectories: AsyncIterator[Trajectory], path: Path, sample: int | None = None) -> int:
    """A line for every finished episode, for a person to put true or false in place of null. Returns how many.

    Args:
        sample: only so many, each episode as likely as any other, in their order; the same ones every time.

    Raises:
        ConfigurationError: the file is there already (it may hold a person's work), or cannot be written.
    """
    try:
        async with await anyio.open_file(path, "xb") as file:
            lines = [msgspec.json.encode(_line(each)) async for each in trajectories if each.outcome.finished]
            if sample is not None and sample < len(lines):
                lines = [lines[place] for place in sorted(Random(0).sample(range(len(lines)), sample))]  # noqa: S311 - no secret
            await file.writelines(line + b"\n" for line in lines)
    except FileExistsError as error:
        raise ConfigurationError(f"{path} is there already: choose another name, or remove it") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written ({error.strerror}): choose another") from error
    return len(lines)


def _line(trajectory: Trajectory) -> dict[str, object]:
    return {
        "episode": trajectory.episode,
        "instruction": trajectory.task.instruction,
        "answer": trajectory.answer,
        "website": trajectory.task.website,
        "success": None,
    }
