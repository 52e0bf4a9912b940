"""Every finished episode as a row in memory: asked by the list, fed by a store.

Invariant: at most `most` episodes are held; those that came first are let go, and no judgement brings them back.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import anyio

from ops.web.query import PAGE_ROWS, UNJUDGED, Query, Ruled
from ops.web.summary import Ruling, Summary, ruling_of, summary_of
from schemas.ids import EpisodeId
from schemas.messages import Judgement, Trajectory, Verdict

MOST_EPISODES = 100_000
_MOST_AHEAD = 10_000
"""Episodes that are not held whose rulings are: of those let go there may be any number."""
_MOST_CHOICES = 200
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Row:
    summary: Summary
    ruling: Ruling | None
    """By the rubric that counts."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that a filter may take."""

    value: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One page of the list, and what is known of the rest."""

    rows: tuple[Row, ...]
    num_matching: int
    num_episodes: int
    num_let_go: int
    num_successes: int
    """Among the matching ones."""
    num_with_verdict: int
    """Successes and failures among them."""
    mean_reward: float | None
    page: int
    num_pages: int
    rubric: str
    rubrics: tuple[str, ...]
    choices: dict[str, tuple[Choice, ...]]
    revision: int
    reading: bool
    """There is more than was read so far."""
    problems: tuple[str, ...]


@dataclass
class EpisodeIndex:
    """`rubric`: whose judgements count unless a query names another."""

    rubric: str
    most: int = MOST_EPISODES
    revision: int = 0
    """Counts changes."""
    reading: bool = True
    problems: list[str] = field(default_factory=list)
    num_let_go: int = 0
    _rows: dict[EpisodeId, Summary] = field(default_factory=dict)
    _ahead: dict[EpisodeId, tuple[Ruling, ...]] = field(default_factory=dict)
    """What was said of episodes that are not held: the latest, in case they are still to be read."""
    _rubrics: dict[str, None] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _selected: tuple[int, Query, list[Ruled]] | None = None
    _choices: tuple[int, str, dict[str, tuple[Choice, ...]]] | None = None

    def add(self, trajectory: Trajectory) -> None:
        """Takes an episode in, once."""
        if trajectory.episode not in self._rows:
            summary = self._shared(summary_of(trajectory))
            self._put(replace(summary, rulings=self._ahead.pop(trajectory.episode, ())))

    def rule(self, judgement: Judgement) -> None:
        """A judgement brings its episode along when that was not read yet; it waits for it when it may have been let go."""
        self._rubrics[judgement.rubric] = None
        episode, known = judgement.episode, self._rows.get(judgement.episode)
        if known is None and not self.num_let_go:
            known = self._shared(summary_of(judgement.trajectory))
        before = self._ahead.get(episode, ()) if known is None else known.rulings
        rulings = (*(each for each in before if each.rubric != judgement.rubric), ruling_of(judgement))
        if known is not None:
            self._put(replace(known, rulings=rulings))
            return
        self._ahead[episode] = rulings
        if len(self._ahead) > _MOST_AHEAD:
            del self._ahead[next(iter(self._ahead))]

    def caught_up(self) -> None:
        if self.reading:
            self.reading = False
            self._mark()

    def trouble(self, sentence: str) -> None:
        """Something that a person should know, once."""
        if sentence not in self.problems:
            self.problems = [*self.problems, sentence][-_MOST_PROBLEMS:]
            self._mark()

    async def wait_change(self, revision: int) -> int:
        """Returns the present revision as soon as it is another one."""
        while self.revision == revision:
            await self._changed.wait()
        return self.revision

    def touch(self) -> None:
        """Wakes everybody who waits for a change."""
        self._mark()

    def find(self, episode: str) -> Summary | None:
        return self._rows.get(EpisodeId(episode))

    def siblings(self, of: Summary) -> list[Summary]:
        """Every episode of the same task, its group's first, oldest first."""
        same = [row for row in self._rows.values() if row.task == of.task and row.split == of.split]
        return sorted(same, key=lambda row: (row.group != of.group, row.ended_at, row.episode))

    def rubric_that_counts(self, asked: str = "") -> str:
        """The one asked for; else the run's own; else, where that judged nothing, the first that did."""
        if asked or self.rubric in self._rubrics:
            return asked or self.rubric
        return next(iter(self._rubrics), self.rubric)

    def listing(self, query: Query) -> Listing:
        rubric = self.rubric_that_counts(query.rubric)
        found = self._select(query, rubric)
        num_pages = max(1, -(-len(found) // PAGE_ROWS))
        page = min(query.page, num_pages)
        verdicts = Counter(ruling.verdict for _, ruling in found if ruling is not None)
        rewards = [ruling.reward for _, ruling in found if ruling is not None and ruling.reward is not None]
        return Listing(
            rows=tuple(Row(*pair) for pair in found[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]),
            num_matching=len(found),
            num_episodes=len(self._rows),
            num_let_go=self.num_let_go,
            num_successes=verdicts[Verdict.SUCCESS.value],
            num_with_verdict=verdicts[Verdict.SUCCESS.value] + verdicts[Verdict.FAILURE.value],
            mean_reward=sum(rewards) / len(rewards) if rewards else None,
            page=page,
            num_pages=num_pages,
            rubric=rubric,
            rubrics=tuple(self._rubrics),
            choices=self._choices_by(rubric),
            revision=self.revision,
            reading=self.reading,
            problems=tuple(self.problems),
        )

    def _select(self, query: Query, rubric: str) -> list[Ruled]:
        """Turning pages asks for the same again."""
        asked = replace(query, page=1, rubric=rubric)
        if self._selected is None or self._selected[:2] != (self.revision, asked):
            found = asked.select([(row, row.ruling(rubric)) for row in self._rows.values()])
            self._selected = (self.revision, asked, found)
        return self._selected[2]

    def _choices_by(self, rubric: str) -> dict[str, tuple[Choice, ...]]:
        if self._choices is None or self._choices[:2] != (self.revision, rubric):
            rows = self._rows.values()
            counted = {name: _counted(rows, value) for name, value in _CHOICES.items()}
            ruled = (row.ruling(rubric) for row in rows)
            verdicts = Counter(UNJUDGED if ruling is None else ruling.verdict for ruling in ruled)
            self._choices = (self.revision, rubric, counted | {"verdict": _most_common(verdicts)})
        return self._choices[2]

    def _shared(self, summary: Summary) -> Summary:
        """Texts that many episodes have in common are held once."""
        share = self._texts.setdefault
        if len(self._texts) > 4 * self.most:
            self._texts.clear()
        return replace(
            summary,
            instruction=share(summary.instruction, summary.instruction),
            website=share(summary.website, summary.website),
            site=share(summary.site, summary.site),
            worker=share(summary.worker, summary.worker),
            task=share(summary.task, summary.task),
        )

    def _put(self, summary: Summary) -> None:
        self._rows[summary.episode] = summary
        while len(self._rows) > self.most:
            del self._rows[next(iter(self._rows))]
            self.num_let_go += 1
        self._mark()

    def _mark(self) -> None:
        self.revision += 1
        self._changed.set()
        self._changed = anyio.Event()


_CHOICES: dict[str, Callable[[Summary], str]] = {
    "site": lambda row: row.site,
    "split": lambda row: row.split,
    "difficulty": lambda row: str(row.difficulty),
    "outcome": lambda row: row.outcome,
    "worker": lambda row: row.worker,
}


def _counted(rows: Iterable[Summary], value: Callable[[Summary], str]) -> tuple[Choice, ...]:
    return _most_common(Counter(found for row in rows if (found := value(row))))


def _most_common(counts: Counter[str]) -> tuple[Choice, ...]:
    return tuple(Choice(value, count) for value, count in sorted(counts.most_common(_MOST_CHOICES)))
