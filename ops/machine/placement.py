"""Decides what a machine runs of a run's roles, and which GPUs each process sees. Pure, but for counting GPUs."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.launch.devices import VISIBLE, devices_in
from ops.launch.node_file import Share, named_twice
from ops.launch.processes import share_specs
from ops.processes.supervisor import RoleSpec
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Role

_GPUS = Path("/proc/driver/nvidia/gpus")
_TRAINING_SHARE = 4
"""One GPU in so many trains where nobody says which (AsyncWebRL: 16 of 64): sampling takes most of an iteration."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a person asked for."""

    num_browsers: int = 1
    """Processes; each has `env_config.server_size` sessions."""
    num_judges: int = 1
    num_policies: int | None = None
    """None: one, or one a GPU."""
    policy_gpus: tuple[str, ...] = ()
    """What each policy process sees, as `0` or `0,1`; empty: by `num_policies`, or what the trainer leaves."""
    trainer_gpus: tuple[str, ...] = ()
    """One for each rank; empty: a share of what there is."""
    archives: bool = False


def visible_gpus() -> tuple[str, ...]:
    """Those that CUDA would show here.

    Raises:
        ConfigurationError: CUDA_VISIBLE_DEVICES names one twice.
    """
    said = os.environ.get(VISIBLE)
    if said is not None:
        return devices_in(said)
    return tuple(str(number) for number, _ in enumerate(_GPUS.glob("*")))


def shares_of(config: Config, wanted: Wanted, gpus: Sequence[str]) -> tuple[Share, ...]:
    """In the order in which they are started; without the server.

    Raises:
        ConfigurationError: a policy process would have no GPU left, or two of a role would have the same one.
    """
    for option, named in (("--policy-gpus", wanted.policy_gpus), ("--trainer-gpus", wanted.trainer_gpus)):
        if twice := named_twice(named):
            raise ConfigurationError(
                f"{option} names GPU {twice} twice: write each once, as in 0,1 for a process each, or 0+1 for one with both"
            )
    trains = config.feeder_config.learns
    shares: list[Share] = []
    policy = config.policy_config
    trainer_gpus, policy_gpus = _divided(wanted, gpus if policy.engine == "vllm" else (), trains, policy.num_parts)
    if config.feeder_config.mode != "offline":
        shares.append(Share(role=Role.FEEDER))
        shares.append(Share(role=Role.BROWSER, count=wanted.num_browsers))
        shares.append(Share(role=Role.POLICY, count=len(policy_gpus) or wanted.num_policies or 1, gpus=policy_gpus))
        shares.append(Share(role=Role.JUDGE, count=wanted.num_judges))
    if wanted.archives:
        shares.append(Share(role=Role.ARCHIVER))
    if trains:
        shares.append(Share(role=Role.TRAINER, count=len(trainer_gpus) or 1, gpus=trainer_gpus))
    return tuple(shares)


def _divided(wanted: Wanted, gpus: Sequence[str], trains: bool, num_parts: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The trainer's, one a rank, and the policies', one entry a process. One GPU alone is shared."""
    for entry in wanted.policy_gpus:
        if len(entry.split(",")) < num_parts:
            raise ConfigurationError(
                f"a policy process that sees {entry} has too few GPUs for the {num_parts} parts of "
                "policy_config.vllm_args: join them with +, as in 0+1,2+3"
            )
    trainer = wanted.trainer_gpus if trains else ()
    if trains and not trainer and gpus:
        free = [gpu for gpu in gpus if gpu not in ",".join(wanted.policy_gpus).split(",")] or list(gpus)
        share = max(1, len(free) // _TRAINING_SHARE)
        # What is too little for one more policy trains.
        trainer = tuple(free[: share + (len(free) - share) % num_parts])
    if wanted.policy_gpus or not gpus:
        return trainer, wanted.policy_gpus
    rest = [gpu for gpu in gpus if gpu not in trainer] or list(gpus)
    sets = [",".join(rest[at : at + num_parts]) for at in range(0, len(rest) - num_parts + 1, num_parts)]
    count = wanted.num_policies or max(1, len(sets))
    if count > len(sets):
        each = "a GPU" if num_parts == 1 else f"{num_parts} GPUs"
        said = f"{count} policies want {each} each" if count > 1 else f"a policy wants {each}"
        raise ConfigurationError(
            f"{said}, and {len(rest)} are left of {len(gpus)}: ask for fewer with --policies, or "
            "say who sees which with --policy-gpus and --trainer-gpus"
        )
    return trainer, tuple(sets[:count])


def specs_of(shares: Sequence[Share], arguments: Sequence[str]) -> Iterator[RoleSpec]:
    """The processes; they are named `<role>-1` and so on. `arguments`: that say which run it is."""
    for share in shares:
        yield from share_specs(share, prefix="", arguments=arguments)
