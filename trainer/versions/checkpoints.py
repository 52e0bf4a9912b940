"""Checkpoints on disk: written whole or not at all, hashed, and complete for a trainer that continues from them.

    <root>/v000003-1f2e3d4c/
        config.json, tokenizer, processor, model.safetensors   what transformers and vLLM load; or, of adapters,
        adapter_config.json, adapter_model.safetensors         what peft and vLLM put on the base model
        trainer/optimizer-rank00000.safetensors                what a rank holds of the optimizer's state; every
                                                               `save_every`-th version has it
        trainer/critic.safetensors                             the critic, where there is one
        trainer/critic-optimizer-rank00000.safetensors         and what a rank holds of its optimizer's
        trainer/state.msgpack                                  what was consumed, the replay buffer, counters

No file is a pickle. A folder gets its final name only when everything in it has reached the disk.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlparse

import msgspec

from schemas.errors import CheckpointCorrupt, ConfigurationError, TrainerError
from schemas.messages import Checkpoint, FileHash
from trainer.collapse import GuardMemory
from trainer.episodes.groups import Member
from trainer.episodes.passes import Consumed, Position
from trainer.episodes.replay import ReplayEntry
from trainer.ports import EngineFiles
from trainer.versions.retention import Retention

STATE_FILE = "trainer/state.msgpack"
_MOST_HASHED = 16
_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".index.json")


class TrainerState(msgspec.Struct, frozen=True, kw_only=True):
    """What a trainer needs besides weights and optimizer to continue as if it had never stopped."""

    version: int
    position: Position = Position()
    """Up to where everything on JUDGED was consumed."""
    consumed: tuple[Consumed, ...] = ()
    """The latest judgements up to the position, in their order: known again wherever they stand after a server lost power."""
    num_trajectories: int
    """Training episodes consumed, trained on or not; once a pass."""
    num_updates: int
    replay: tuple[ReplayEntry, ...] = ()
    """Cloning: what it draws from."""
    validation: tuple[ReplayEntry, ...] = ()
    """Cloning: what `val_loss` is measured on."""
    carried: tuple[Member, ...] = ()
    """Policy gradients: members of groups that are not complete yet."""
    successes: tuple[Member, ...] = ()
    """Policy gradients with success replay: what that gives."""
    guard: GuardMemory = GuardMemory()
    whole: int = 0
    """The version whose folder has the optimizer's state that training goes on with: this one, or one before; 0: none has."""


def write_checkpoint(
    root: Path, *, base: Path | None, engine: EngineFiles, state: TrainerState
) -> tuple[Path, tuple[FileHash, ...]]:
    """Writes one checkpoint; the other files of the model are copied from `base`. Returns its folder and its files.

    `base`: None where the engine's files are adapters, which need no others.

    Raises:
        TrainerError: the disk is full or cannot be written to.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(root)
        writing = root / f".writing-v{state.version:06d}-{os.getpid()}"
        (writing / "trainer").mkdir(parents=True)
        for file in model_files(base) if base is not None else ():
            shutil.copyfile(file, writing / file.name)
        engine.write(writing)
        (writing / STATE_FILE).write_bytes(msgspec.msgpack.encode(state))
        files = hash_files(writing)
        _to_disk(writing, files)
        final = root / folder_name(state.version, files)
        _put(writing, final)
        _sync(root)
    except OSError as error:
        _remove_unfinished(root)
        raise TrainerError(f"the checkpoint cannot be written to {root} ({error.strerror}): free some space there") from error
    return final, files


def _remove_unfinished(root: Path) -> None:
    """What a trainer that was killed had begun: a run has one trainer, and each of these may be as large as a version."""
    for folder in root.glob(".writing-v*"):
        shutil.rmtree(folder, ignore_errors=True)


def _put(written: Path, final: Path) -> None:
    """Gives what is written its name.

    A folder that has the name already holds the same bytes, and may be announced, and being loaded: it stays as it is, unless
    its bytes are not those that the name was made of.
    """
    try:
        if final.exists():
            require_intact(final)
            shutil.rmtree(written)
            return
    except CheckpointCorrupt:
        final.rename(final.with_name(f".writing-{final.name}-damaged-{os.getpid()}"))
    written.rename(final)


def model_files(base: Path) -> list[Path]:
    """The files of a model folder that are not weights: configuration, tokenizer, processor."""
    return sorted(file for file in base.iterdir() if file.is_file() and not file.name.endswith(_WEIGHT_SUFFIXES))


def hash_model(folder: Path) -> tuple[FileHash, ...]:
    """What a policy loads of a model's folder: no state of a trainer, and no weights in other formats beside safetensors."""
    files = [file for file in folder.iterdir() if file.is_file()]
    weights = [file for file in files if file.name.endswith((".safetensors", ".safetensors.index.json"))]
    return _hashed(folder, [*model_files(folder), *weights] if weights else files)


def hash_files(folder: Path) -> tuple[FileHash, ...]:
    """Every file of a folder with its hash, by relative path."""
    return _hashed(folder, (path for path in folder.rglob("*") if path.is_file()))


def _hashed(folder: Path, files: Iterable[Path]) -> tuple[FileHash, ...]:
    paths = sorted(files)
    return tuple(
        FileHash(path=path.relative_to(folder).as_posix(), sha256=digest, num_bytes=path.stat().st_size)
        for path, digest in zip(paths, _digests(paths), strict=True)
    )


def _digest_of_all(files: Sequence[FileHash]) -> str:
    """What a folder's name ends with."""
    return hashlib.sha256(msgspec.msgpack.encode(files)).hexdigest()[:8]


def require_intact(folder: Path) -> None:
    """Raises `CheckpointCorrupt` when a checkpoint's files are not those that its name was made of."""
    if _digest_of_all(hash_files(folder)) != folder.name.rpartition("-")[2]:
        raise CheckpointCorrupt(
            f"{folder} is not what was written (its files' hash differs): restore it, or take another version"
        )


def why_hollow(checkpoint: Checkpoint) -> str:
    """Why there is nothing behind an announcement, for people; empty: its trainer wrote what it announces.

    What was written and is damaged by now is another matter (`verify`): of that a person knows more than we do.
    """
    if checkpoint.version == 0:
        return ""
    try:
        folder = folder_of(checkpoint.uri)
    except ConfigurationError as error:
        return str(error)
    if folder.name != folder_name(checkpoint.version, checkpoint.files):
        return f"{folder} is not the name of version {checkpoint.version} with these files"
    if STATE_FILE not in {file.path for file in checkpoint.files}:
        return f"version {checkpoint.version} is announced without {STATE_FILE}"
    return "" if folder.is_dir() else f"{folder} is not there"


def folder_name(version: int, files: Sequence[FileHash]) -> str:
    """Of a version's folder, by its content."""
    return f"v{version:06d}-{_digest_of_all(files)}"


def _digests(paths: Iterable[Path]) -> Iterator[str]:
    """Side by side: a hash keeps one core busy, and a whole version of 8 billion parameters has 123 GB."""
    with ThreadPoolExecutor(min(_MOST_HASHED, os.cpu_count() or 1)) as pool:
        yield from pool.map(_digest, paths)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _to_disk(folder: Path, files: Iterable[FileHash]) -> None:
    for file in files:
        _sync(folder / file.path)
    _sync(folder / "trainer")
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folder_of(uri: str) -> Path:
    """The folder that a `file://` URI names.

    Raises:
        ConfigurationError: another scheme.
    """
    parsed = urlparse(uri)
    if parsed.scheme != "file":
        raise ConfigurationError(f"the checkpoint is at {uri}: the trainer continues from folders (file://) only")
    return Path(unquote(parsed.path))


def verify(folder: Path, files: Sequence[FileHash]) -> None:
    """Raises `CheckpointCorrupt` naming the first file that is missing or differs from its recorded hash."""
    paths = [folder / file.path for file in files]
    for path in paths:
        if not path.is_file():
            raise CheckpointCorrupt(f"{path} is missing: put it back, or begin a new run")
    for path, file, digest in zip(paths, files, _digests(paths), strict=True):
        if digest != file.sha256:
            raise CheckpointCorrupt(f"{path} is not what was written (its hash differs): restore it, or begin a new run")


def read_trainer_state(folder: Path) -> TrainerState:
    """Raises `CheckpointCorrupt` when the file is missing or cannot be read."""
    try:
        return msgspec.msgpack.decode((folder / STATE_FILE).read_bytes(), type=TrainerState)
    except (OSError, msgspec.DecodeError) as error:
        raise CheckpointCorrupt(f"{folder / STATE_FILE} cannot be read: {error}") from error


def holds_optimizer(folder: Path) -> bool:
    """Whether training can go on from a version's folder, rather than only begin with its weights."""
    return any(file.name != Path(STATE_FILE).name for file in (folder / "trainer").glob("*"))


def prune(root: Path, *, newest: int, retention: Retention) -> None:
    """Deletes the checkpoints before `newest` that need not be kept."""
    folders = list(root.glob("v[0-9]*-*"))
    stay = [folder for folder in folders if not retention.lets_go(version_of(folder), newest=newest)]
    whole = {version for folder in stay for version in _goes_on_with(folder, folders)}
    for folder in folders:
        if folder not in stay and version_of(folder) not in whole:
            shutil.rmtree(folder, ignore_errors=True)


def _goes_on_with(folder: Path, folders: Sequence[Path]) -> set[int]:
    """The version whose optimizer's state training would go on with from this one; all, where this one cannot say which."""
    if not (folder / STATE_FILE).exists():
        return set()
    try:
        return {read_trainer_state(folder).whole}
    except CheckpointCorrupt:
        return {version_of(each) for each in folders if holds_optimizer(each)}


def require_no_versions(root: Path, run: str) -> None:
    """Raises `TrainerError` when versions stand in the folder of a run that has announced none: its stream was lost."""
    versions = sorted(version_of(folder) for folder in root.glob("v[0-9]*-*"))
    if versions:
        raise TrainerError(
            f"{root} holds versions up to {versions[-1]} and CHECKPOINTS of run {run} announces none: give the run its "
            "streams back, or begin a new run in another folder"
        )


def version_of(folder: Path) -> int:
    """The version in a checkpoint folder's name."""
    return int(folder.name[1:].partition("-")[0])
