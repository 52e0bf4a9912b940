"""Which devices the GPU numbers of a node file are on the machine where its node starts: pure policy.

A job of Slurm, or whoever sets CUDA_VISIBLE_DEVICES, gives a node some devices of a machine; the others are not its own.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count, takewhile

from ops.launch.node_file import Node, named_twice
from schemas.errors import ConfigurationError

VISIBLE = "CUDA_VISIBLE_DEVICES"


def devices_in(said: str) -> tuple[str, ...]:
    """Of CUDA_VISIBLE_DEVICES, those that CUDA takes: up to the first that names none, such as -1 or NoDevFiles.

    Raises:
        ConfigurationError: it names one twice, with which CUDA shows none at all.
    """
    devices = tuple(takewhile(_names_one, (device.strip() for device in said.split(","))))
    if twice := named_twice(devices):
        raise ConfigurationError(f"{VISIBLE}={said!r} names {twice} twice, and CUDA then shows no GPU: write each once")
    return devices


def _names_one(device: str) -> bool:
    return device.isdecimal() or device.startswith(("GPU-", "MIG-"))


def on_devices(node: Node, environment: Mapping[str, str]) -> Node:
    """The node with the names of devices in place of its file's numbers.

    Of devices that were given numbers are themselves where all are among them; else the lowest is the first of them, and so
    on. A job of Slurm that is not told which it has counts its own from 0.

    Raises:
        ConfigurationError: too few were given, or one twice.
    """
    names = _names(node, environment)
    shares = (replace(share, gpus=tuple(_renamed(entry, names) for entry in share.gpus)) for share in node.shares)
    return replace(node, shares=tuple(shares))


def _names(node: Node, environment: Mapping[str, str]) -> Mapping[str, str]:
    given = environment.get(VISIBLE)
    if given is None:
        own = map(str, count()) if "SLURM_JOB_ID" in environment else node.gpus
        return dict(zip(node.gpus, own, strict=False))
    devices = devices_in(given)
    if len(devices) < len(node.gpus):
        raise ConfigurationError(
            f"the node {node.name} has the GPUs {', '.join(node.gpus)} in its file, and was given "
            f"{VISIBLE}={given!r}: ask for {len(node.gpus)}, or write fewer in gpus"
        )
    return dict(zip(node.gpus, node.gpus if set(node.gpus) <= set(devices) else devices, strict=False))


def _renamed(entry: str, names: Mapping[str, str]) -> str:
    return ",".join(names[number] for number in entry.split(","))
