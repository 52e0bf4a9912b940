"""Success by what training had played before: the task itself, another one of its site, or neither."""

from dataclasses import dataclass, field
from typing import Protocol

from ops.analysis.report.episode import ReportedEpisode
from ops.analysis.report.labels import DEMONSTRATION, TRAIN, kind_of
from ops.analysis.report.success import Tallies, Tally
from schemas.messages import Task
from schemas.site import site_of

TASK, SITE, NEITHER = "the task", "its site only", "neither"
SEEN = (TASK, SITE, NEITHER)
_FROM_THE_BEGINNING = -1


class Asked(Protocol):
    """What makes a task the same in two task files, whatever its name."""

    @property
    def website(self) -> str: ...
    @property
    def instruction(self) -> str: ...


@dataclass(slots=True)
class Seen:
    """What is played under a version can be learnt from in later ones: what came before an episode was begun under a lower.

    Which episode came first does not matter to the pass that gathers this. Once a task is known from a lower version, its
    episodes are counted at once: what waits are those of the lowest version that training played it in, and held-out ones.
    """

    tasks: dict[int, int] = field(default_factory=dict)
    """Lowest version under which training played it, by hash."""
    sites: dict[str, int] = field(default_factory=dict)
    known: Tallies = field(default_factory=dict)
    """Of tasks that training had played, by kind."""
    waiting: dict[int, dict[tuple[str, int, str], Tally]] = field(default_factory=dict)
    """By task, then by site, version and kind: until all of training is known."""

    def note_training(self, asked: Asked, version: int = _FROM_THE_BEGINNING) -> None:
        task, site = _hash(asked), site_of(asked.website)
        self.sites[site] = min(version, self.sites.get(site, version))
        if version < self.tasks.get(task, version + 1):
            self.tasks[task] = version
            self._count(task, version)

    def _count(self, task: int, version: int) -> None:
        """What waits of the task and was begun under a later version than this."""
        left = self.waiting.pop(task, {})
        for key in [key for key in left if key[1] > version]:
            _add(self.known, key[2], left.pop(key))
        if left:
            self.waiting[task] = left

    def note(self, task: Task) -> None:
        """An episode, also one that the report leaves out."""
        if kind_of(task) in (TRAIN, DEMONSTRATION):
            self.note_training(task, task.policy_version)

    def add(self, one: ReportedEpisode) -> None:
        task = one.task
        asked, version = _hash(task), task.policy_version
        if self.tasks.get(asked, version) < version:
            self.known.setdefault(one.kind, Tally()).add(one)
            return
        key = (site_of(task.website), version, one.kind)
        self.waiting.setdefault(asked, {}).setdefault(key, Tally()).add(one)

    def label_of(self, task: Task) -> str:
        """What came before an episode of this task; empty where nothing is known of training."""
        return self._label(_hash(task), site_of(task.website), task.policy_version) if self.tasks else ""

    def tallies(self) -> dict[str, Tallies]:
        """By label and kind; empty where nothing is known of training."""
        if not self.tasks:
            return {}
        found: dict[str, Tallies] = {TASK: dict(self.known)} if self.known else {}
        for task, waiting in self.waiting.items():
            for (site, version, kind), tally in waiting.items():
                _add(found.setdefault(self._label(task, site, version), {}), kind, tally)
        return {label: found[label] for label in SEEN if label in found}

    def _label(self, task: int, site: str, version: int) -> str:
        if self.tasks.get(task, version) < version:
            return TASK
        return SITE if self.sites.get(site, version) < version else NEITHER


def _add(tallies: Tallies, kind: str, tally: Tally) -> None:
    tallies[kind] = tallies.get(kind, Tally()) + tally


def _hash(asked: Asked) -> int:
    return hash((asked.website, asked.instruction))
