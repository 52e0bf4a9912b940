"""Counts what came of training episodes: of the newest versions, and lately on each page or site. Pure."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.ids import PolicyVersion
from schemas.messages import Judgement, Split
from schemas.site import site_of
from schemas.text import visible
from trainer.scores import score

_MOST_VERSIONS = 16
_MOST_PAGES = 200
_LATEST = 64
"""Episodes of a page that its figures are of."""
_NAME = 64


class Ended(NamedTuple):
    success: bool | None
    """None: it has no verdict, or success is not about it."""
    num_steps: int


@dataclass
class Outcome:
    """Of some episodes."""

    num_episodes: int = 0
    num_scored: int = 0
    num_successes: int = 0
    num_steps: int = 0

    def add(self, ended: Ended) -> None:
        self.num_episodes += 1
        self.num_scored += ended.success is not None
        self.num_successes += bool(ended.success)
        self.num_steps += ended.num_steps

    @property
    def success(self) -> float | None:
        """Share of those scored."""
        return self.num_successes / self.num_scored if self.num_scored else None

    @property
    def steps(self) -> float:
        """Mean of an episode."""
        return self.num_steps / self.num_episodes if self.num_episodes else 0.0


@dataclass
class Outcomes:
    """The newest versions and the pages met first are kept: memory is bounded."""

    _versions: dict[PolicyVersion, Outcome] = field(default_factory=dict)
    _pages: dict[str, deque[Ended]] = field(default_factory=dict)

    def apply(self, judgement: Judgement) -> None:
        trajectory, scored = judgement.trajectory, score(judgement)
        if judgement.split is not Split.TRAIN or not trajectory.worker:
            return  # held out, or cancelled before anybody played it
        ended = Ended(None if scored is None else scored.success, trajectory.num_steps)
        self._versions.setdefault(trajectory.task.policy_version, Outcome()).add(ended)
        if len(self._versions) > _MOST_VERSIONS:
            del self._versions[min(self._versions)]
        page = page_of(trajectory.task.website)
        if page in self._pages or len(self._pages) < _MOST_PAGES:
            self._pages.setdefault(page, deque(maxlen=_LATEST)).append(ended)

    def by_version(self) -> dict[PolicyVersion, Outcome]:
        """By the version that admission counted from, the newest first."""
        return {version: self._versions[version] for version in sorted(self._versions, reverse=True)}

    def by_page(self) -> dict[str, Outcome]:
        """Of the latest episodes of each, least success first."""
        found = {page: _outcome(ended) for page, ended in self._pages.items()}
        return dict(sorted(found.items(), key=lambda each: (each[1].success is None, each[1].success or 0.0, each[0])))


def page_of(website: str) -> str:
    """`suite:page` of a suite's, else the site."""
    site, page = site_of(website), website.strip().partition("?")[0]
    return visible(page if page.lower().startswith(f"{site}:") else site, _NAME)


def _outcome(ended: Iterable[Ended]) -> Outcome:
    outcome = Outcome()
    for each in ended:
        outcome.add(each)
    return outcome
