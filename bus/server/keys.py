"""The keys of a server: one nkey seed a role and run, made here, readable by their owner alone, never logged.

<folder>/<run>/<role>.seed     what a node with that role is given
<folder>/system.seed           for the server's own account: monitoring from inside
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import nkeys

from bus.access import Access
from schemas.errors import ConfigurationError
from schemas.ids import RunName
from schemas.private_file import require_private


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys in one folder."""

    folder: Path

    def make(self, run: RunName) -> None:
        """Makes the keys of a run that are not there yet; those that are stay what they are."""
        _private_folder(self.folder)
        _private_folder(self.folder / run)
        for role in Access:
            _make_seed(self._path(run, role))

    def seed(self, run: RunName, role: Access) -> str:
        """Raises `ConfigurationError` when the file is missing or others may read it."""
        return read_seed(self.folder / run, role)

    def public_key(self, run: RunName, role: Access) -> str:
        return public_key(self.seed(run, role))

    def system_seed(self) -> str:
        """Of the server's own account."""
        _private_folder(self.folder)
        path = self.folder / "system.seed"
        _make_seed(path)
        return _read(path)

    def system_public_key(self) -> str:
        return public_key(self.system_seed())

    def _path(self, run: RunName, role: Access) -> Path:
        return self.folder / run / f"{role}.seed"


def read_seed(folder: Path, role: Access) -> str:
    """The seed of a role in a folder of one run's keys, as a node was given it.

    Raises:
        ConfigurationError: the file is missing, is no seed, or others may read it; says what to do.
    """
    return _read(folder / f"{role}.seed")


def public_key(seed: str) -> str:
    pair = nkeys.from_seed(bytearray(seed.encode()))
    key: str = pair.public_key.decode()
    pair.wipe()
    return key


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that only its owner may read, whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    partial.replace(path)


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise ConfigurationError(
            f"the key {path} cannot be read ({error.strerror}): copy {path.parent.name}/{path.name} from the keys folder of "
            "the server, and let only its owner read it"
        ) from error
    require_private(path)
    try:
        public_key(text)
    except (nkeys.NkeysError, ValueError) as error:
        raise ConfigurationError(f"{path} holds no nkey seed: copy it again from the keys folder of the server") from error
    return text


def _make_seed(path: Path) -> None:
    if not path.exists():
        write_private(path, nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER))


def _private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
