"""The text files that nodes are started with: templates beside the code, filled from the node file. They hold no secret."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from string import Template

from ops.launch.node_file import Node, NodeFile

_FOLDER = files("ops.launch") / "templates"
NODES_FILE = "nodes.yaml"
"""Under this name the node file lies in the node's folder, the recipe beside it."""


@cache
def _template(name: str) -> Template:
    return Template((_FOLDER / name).read_text())


def filled(template: str, /, **values: object) -> str:
    """Raises `KeyError` for a value that the template wants and is not given."""
    return _template(template).substitute({key: str(value) for key, value in values.items()})


def common(file: NodeFile, node: Node, options: str = "") -> dict[str, str]:
    """What every template of a node may name. `file` has the node's paths; `options` are those of `node.sh`."""
    given = f" --venv {file.venv}" if file.venv else ""
    return {
        "run": file.run,
        "node": node.name,
        "folder": file.folder,
        "file": f"{file.folder}/{NODES_FILE}",
        "script": f"{file.source}/ops/launch/node.sh{given}{options}",
    }


def systemd_unit(file: NodeFile, node: Node, options: str = "") -> str:
    written = " ".join(f'"-{path}"' for path in _written(file, node))  # with the dash one that is not there is no failure
    return filled("systemd.service", **common(file, node, options), written=written)


def _written(file: NodeFile, node: Node) -> Iterator[str]:
    """The folders in which a node's processes write."""
    yield file.folder
    if node.is_server:
        yield file.server
        if file.address_file is not None:
            yield str(file.address_file.parent)


def slurm_script(file: NodeFile, node: Node, options: str = "") -> str:
    lines = [f"#SBATCH {option}" for option in node.slurm.values() if option]
    if node.gpus:
        lines.append(f"#SBATCH --gpus={len(node.gpus)}")
    if node.is_server and file.address_file is None:
        lines.append(f"#SBATCH --nodelist={node.host}")  # its address stands in bus_config.url
    return filled("slurm.sbatch", **common(file, node, options), resources="\n".join(lines))
