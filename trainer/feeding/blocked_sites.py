"""Leaves out training tasks of sites that blocked the agent. Pure: a blocklist and a time in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sys import intern

from bus.blocklist import Blocklist, end_of
from schemas.ids import TaskId
from schemas.messages import SiteBlock
from schemas.site import site_of
from trainer.feeding.task_files import TaskSpec


@dataclass(frozen=True)
class LeftOut:
    """As of one moment."""

    blocks: Mapping[str, SiteBlock]
    """By site."""
    num_sites: int
    """That the training tasks have, blocked or not."""

    @property
    def everything(self) -> bool:
        """Whether no training task may be begun."""
        return 0 < self.num_sites == len(self.blocks)

    def sentence(self) -> str:
        """What a feeder says that waits because of `everything`."""
        first = min(self.blocks.values(), key=lambda entry: entry.until)
        which = (
            f"all {self.num_sites} training sites are" if self.num_sites > 1 else f"the only training site, {first.site}, is"
        )
        return f"{which} blocked until {end_of(first):%Y-%m-%d %H:%M:%S} UTC"


class TrainingSites:
    """The sites of a task file."""

    def __init__(self, specs: Sequence[TaskSpec]) -> None:
        # Many tasks have one site: its name is in memory once.
        self.by_task: Mapping[TaskId, str] = {spec.task: intern(site_of(spec.website)) for spec in specs}
        self._sites = frozenset(self.by_task.values())

    def left_out(self, blocklist: Blocklist, now_s: float) -> LeftOut:
        """`now_s`: unix seconds."""
        blocked = blocklist.blocked(now_s)
        return LeftOut({site: entry for site, entry in blocked.items() if site in self._sites}, len(self._sites))
