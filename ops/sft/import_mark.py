"""Marks in a run's folder which conversations go into it, from before the first of them is written until the last one is.

Invariant: what a killed import has written is never trained on as if it was all, and all of a run is rendered in one way.
"""

import hashlib
import os
import shlex
from pathlib import Path

import msgspec

from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError

_OF_PROMPTS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "preprocessor_config.json",
    "processor_config.json",
)
"""Files of a model that say what its prompts are."""


class ImportMark(msgspec.Struct, frozen=True, kw_only=True):
    """Of the latest import."""

    source: str
    form: str
    dataset: str = ""
    skip_bad: bool = False
    num_screenshots: int | None = None
    """Latest ones that a prompt keeps; None: all."""
    prompts: str
    """Digest of what the model's prompts depend on."""
    num_conversations: int = 0
    """0: nobody has looked yet."""
    is_finished: bool = False

    def command(self, folder: RunFolder) -> str:
        """What imports the same once more."""
        words = ["millrace", "import", self.source, "--from", self.form]
        words += ["--dataset", self.dataset] if self.dataset else []
        words += [] if self.num_screenshots is None else ["--screenshots", str(self.num_screenshots)]
        words += ["--skip-bad"] if self.skip_bad else []
        return shlex.join([*words, "--run-dir", str(folder.path)])


def prompts_digest(model: Path) -> str:
    """Of the model's tokenizer, chat template and image processor."""
    hashed = hashlib.sha256()
    for name in _OF_PROMPTS:
        data = (model / name).read_bytes() if (model / name).is_file() else b""
        hashed.update(hashlib.sha256(data).digest())
    return hashed.hexdigest()


def refuse_other_import(folder: RunFolder, mark: ImportMark) -> None:
    """Raises `ConfigurationError` where the run holds conversations in another rendering, or a part of another import."""
    known = _read(folder)
    if known is not None:
        _require_same_rendering(folder, known, mark)
        _require_continued(folder, known, mark)


def begin_import(folder: RunFolder, mark: ImportMark) -> None:
    """Raises `ConfigurationError` as `refuse_other_import`."""
    refuse_other_import(folder, mark)
    _write(folder, mark)


def finish_import(folder: RunFolder, mark: ImportMark) -> None:
    _write(folder, msgspec.structs.replace(mark, is_finished=True))


def require_import(folder: RunFolder, prompts: str) -> None:
    """Raises `ConfigurationError` where an import has not come to its end, or was made for another state of the model."""
    known = _read(folder)
    if known is None:
        return
    if not known.is_finished:
        raise ConfigurationError(
            f"the import of {known.num_conversations} conversations of {known.source} has not come to its end: repeat it, "
            f"{known.command(folder)}"
        )
    if known.prompts != prompts:
        raise _other_prompts(folder)


def _require_same_rendering(folder: RunFolder, known: ImportMark, mark: ImportMark) -> None:
    if known.prompts != mark.prompts:
        raise _other_prompts(folder)
    if known.num_screenshots != mark.num_screenshots:
        raise ConfigurationError(
            f"{folder.path} holds conversations of prompts with {_screenshots(known)}, and these would have "
            f"{_screenshots(mark)}: the same answers would be there twice; import into another run, or write --screenshots as "
            "before. Nothing was imported"
        )


def _require_continued(folder: RunFolder, known: ImportMark, mark: ImportMark) -> None:
    if known.is_finished:
        return
    if (known.source, known.form, known.dataset) != (mark.source, mark.form, mark.dataset):
        raise ConfigurationError(
            f"the import of {known.source} into {folder.path} has not come to its end: repeat that first, "
            f"{known.command(folder)}"
        )
    if mark.num_conversations not in (0, known.num_conversations):
        raise ConfigurationError(
            f"{mark.source} has {mark.num_conversations} conversations now, and its import into {folder.path} was begun with "
            f"{known.num_conversations}: import it into another run"
        )


def _other_prompts(folder: RunFolder) -> ConfigurationError:
    return ConfigurationError(
        f"the conversations of {folder.path} were rendered with another tokenizer, chat template or image processor than the "
        "model's folder has now: put those back, or import into another run"
    )


def _screenshots(mark: ImportMark) -> str:
    return "all screenshots" if mark.num_screenshots is None else f"--screenshots {mark.num_screenshots}"


def _read(folder: RunFolder) -> ImportMark | None:
    try:
        return msgspec.json.decode(folder.imported.read_bytes(), type=ImportMark)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"{folder.imported} cannot be read ({error}): import into another run") from error


def _write(folder: RunFolder, mark: ImportMark) -> None:
    partial = folder.imported.with_name(f"{folder.imported.name}.{os.getpid()}")
    partial.write_bytes(msgspec.json.encode(mark))
    partial.replace(folder.imported)
