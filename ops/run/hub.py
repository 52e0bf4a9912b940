"""Fetches models of the Hugging Face Hub into its cache on this machine, and says why one cannot be had.

Where the hub is, what is kept of it and who asks is the client library's own: HF_ENDPOINT, HF_HOME and HF_HUB_CACHE, HF_TOKEN,
HF_HUB_OFFLINE. A connection that breaks off is gone on with, and files that are there already are not fetched again.
"""

import errno
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

_NAME = re.compile(r"(?P<repository>[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+)(@(?P<revision>[A-Za-z0-9._/-]+))?")
_FILES = ["*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken", "*.safetensors"]
_NOT_OURS = ["original/*", "consolidated*", "onnx/*"]
"""The same weights once more."""
_PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
_CLIENTS = frozenset({"httpx", "httpx2", "httpcore", "requests", "urllib3"})
_log = structlog.get_logger()


@dataclass(frozen=True)
class HubName:
    """A model of the hub, as it is written."""

    repository: str
    revision: str | None
    """Branch, tag or commit; None: the newest."""

    @classmethod
    def of(cls, text: str) -> "HubName | None":
        """None: no name of the hub has this form."""
        found = _NAME.fullmatch(text)
        return cls(found["repository"], found["revision"]) if found is not None else None

    def __str__(self) -> str:
        return f"{self.repository}@{self.revision}" if self.revision else self.repository


def cached(name: HubName) -> Path | None:
    """The model's folder, where all of it is on this machine, and can be read. The folder's name is the commit."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        return Path(
            snapshot_download(
                name.repository,
                revision=name.revision,
                allow_patterns=_FILES,
                ignore_patterns=_NOT_OURS,
                local_files_only=True,
            )
        )
    except (OSError, HFValidationError):
        return None


def fetched(name: HubName) -> Path:
    """The same, fetched if need be. Blocks, maybe for long.

    Raises:
        ConfigurationError: it cannot be had; says what to do.
    """
    return _had(name, _FILES)


def fetched_description(name: HubName, folder: Path) -> Path:
    """The model's config.json alone, into a folder of ours: the cache would take a part for the whole.

    Raises:
        ConfigurationError: as `fetched`.
    """
    return _had(name, ["config.json"], folder)


def _had(name: HubName, files: list[str], folder: Path | None = None) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ConfigurationError(
            f"there is no folder {name} here, and a model of the hub needs the package huggingface_hub: "
            "pip install 'millrace[model]'"
        ) from error
    _log.info("model_fetching", model=str(name))
    for pause_s in (*_PAUSES_S, None):
        try:
            found = snapshot_download(
                name.repository, revision=name.revision, allow_patterns=files, ignore_patterns=_NOT_OURS, local_dir=folder
            )
        except Exception as error:
            failure = _failure(name, error)
            if failure is None:
                raise
            if not failure.may_pass or pause_s is None:
                raise ConfigurationError(failure.sentence) from error
            _log.warning("model_fetching_broke_off", model=str(name), reason=_line(error), again_in_s=pause_s)
            time.sleep(pause_s)
        else:
            _log.info("model_fetched", model=str(name), folder=found)
            return Path(found)
    raise AssertionError("the last try returns or raises")


@dataclass(frozen=True)
class _Failure:
    sentence: str
    """What is wrong, and what to do."""
    may_pass: bool = False
    """Trying again may help."""


def _failure(name: HubName, error: Exception) -> _Failure | None:
    """None: nobody knows what it is."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    if isinstance(error, HFValidationError):
        return _Failure(f"there is no folder {name} here, and no model can have that name: {_line(error)}")
    origin = error.__cause__ if isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None else error
    if isinstance(origin, HfHubHTTPError):
        return _refused(name, origin)
    return _not_reached(name, origin) or _not_kept(name, origin)


def _refused(name: HubName, error: "HfHubHTTPError") -> _Failure:
    """The hub answered."""
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    hub, status = constants.ENDPOINT, error.response.status_code
    match error:
        case GatedRepoError():
            sentence = f"{name} is gated: ask for access at {hub}/{name.repository}, and put a token of yours into HF_TOKEN"
        case RepositoryNotFoundError():
            sentence = (
                f"there is no folder {name} here, and {hub} shows no model of that name: correct it, or put a token that may "
                "see it into HF_TOKEN"
            )
        case RevisionNotFoundError():
            sentence = f"{name.repository} has no revision {name.revision!r} on {hub}: write a branch, tag or commit"
        case _ if status in (401, 403):
            sentence = f"{hub} refuses the token in HF_TOKEN ({_line(error)}): write one that may read {name}"
        case _:
            sentence = f"{hub} does not serve {name} ({_line(error)}): try again later"
    return _Failure(sentence, may_pass=status >= 500 or status == 429)


def _not_reached(name: HubName, error: BaseException) -> _Failure | None:
    from huggingface_hub import constants
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    hub, kept = constants.ENDPOINT, constants.HF_HUB_CACHE
    if isinstance(error, OfflineModeIsEnabled | LocalEntryNotFoundError):
        return _Failure(f"{name} is not in {kept}, and HF_HUB_OFFLINE forbids to fetch it: fetch it before, or unset that")
    if isinstance(error, ConnectionError | TimeoutError) or type(error).__module__.partition(".")[0] in _CLIENTS:
        sentence = f"{hub} cannot be reached ({_line(error)}): see to the network, or name a mirror with HF_ENDPOINT"
        return _Failure(sentence, may_pass=True)
    return None


def _not_kept(name: HubName, error: BaseException) -> _Failure | None:
    from huggingface_hub import constants

    kept = constants.HF_HUB_CACHE
    match getattr(error, "errno", None):
        case errno.ENOSPC | errno.EDQUOT:
            return _Failure(f"{kept} has no room for {name}: free some, or name another folder with HF_HOME")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return _Failure(f"{kept} cannot be written ({_line(error)}): name another folder with HF_HOME")
    return None


def _line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
