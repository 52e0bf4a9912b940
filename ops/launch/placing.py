"""What a node needs of the files that stand where it is launched from: the node file, the recipe, its keys, its server's."""

from collections.abc import Iterator
from pathlib import Path

from bus.server.cluster_files import server_folder
from bus.server.keys import write_private
from ops.launch.node_file import Node, NodeFile
from ops.launch.templates import NODES_FILE
from schemas.errors import ConfigurationError

_SERVER_FILES = ("nats.conf", "server.pem", "server.key", "ca.pem")


def files_of(file: NodeFile, node: Node, cluster: Path) -> Iterator[tuple[Path, str]]:
    """Each file with its path on the node, to be readable there by its owner alone.

    Args:
        cluster: the folder that `millrace cluster` wrote.
    """
    yield file.path, f"{file.folder}/{NODES_FILE}"
    for given in file.copied:
        yield given, f"{file.folder}/{given.name}"
    yield cluster / "ca.pem", file.ca_file
    for share in node.workers:
        seed = f"{share.role.value}.seed"
        yield cluster / "keys" / file.run / seed, f"{file.keys}/{seed}"
    if node.is_server:
        for name in _SERVER_FILES:
            yield server_folder(cluster, node.host) / name, f"{file.server}/{name}"


def present(files: Iterator[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    """The same. Raises `ConfigurationError` at one that is not here."""
    for source, target in files:
        if not source.is_file():
            raise ConfigurationError(f"{source} is missing: write --cluster, the folder that millrace cluster wrote")
        yield source, target


def place(files: Iterator[tuple[Path, str]]) -> None:
    """Puts them where this machine has those paths too. Raises `ConfigurationError` for one that cannot be read or written."""
    for source, target in present(files):
        path = Path(target)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(path, source.read_bytes())
        except OSError as error:
            raise ConfigurationError(
                f"{target} cannot be written here ({error.strerror}): leave --place out, and copy the files yourself"
            ) from error
