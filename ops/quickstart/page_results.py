"""Success on held-out pages of each kind, before learning and after it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from schemas.ids import PolicyVersion
from schemas.messages import Judgement
from trainer.scores import score


@dataclass(frozen=True, kw_only=True)
class Played:
    """The episodes of one evaluation round on pages of one kind."""

    num_scored: int
    success: float
    steps: float
    """Mean of an episode."""


@dataclass(frozen=True, kw_only=True)
class PageResult:
    page: str
    learnt: bool
    """False: no phase but the evaluation played it."""
    before: Played
    after: Played


def page_results(
    judgements: Iterable[Judgement], *, last: PolicyVersion, unseen_pages: Iterable[str]
) -> tuple[PageResult, ...]:
    """Learnt pages first, each part by name. Pages that were not scored in both rounds are left out."""
    rounds: dict[tuple[str, PolicyVersion], list[tuple[bool, int]]] = defaultdict(list)
    for judgement in judgements:
        scored, task = score(judgement), judgement.trajectory.task
        if scored is not None:
            rounds[task.subdomain, task.policy_version].append((scored.success, judgement.trajectory.num_steps))
    unseen = frozenset(unseen_pages)
    pages = sorted({page for page, _ in rounds}, key=lambda page: (page in unseen, page))
    return tuple(
        PageResult(page=page, learnt=page not in unseen, before=_played(first), after=_played(final))
        for page in pages
        if (first := rounds.get((page, PolicyVersion(0)))) and (final := rounds.get((page, last)))
    )


def _played(episodes: list[tuple[bool, int]]) -> Played:
    number = len(episodes)
    return Played(
        num_scored=number,
        success=round(sum(success for success, _ in episodes) / number, 4),
        steps=round(sum(steps for _, steps in episodes) / number, 2),
    )


def page_table(pages: Iterable[PageResult]) -> Table:
    """One line a page, before and after; what is still never solved stands out."""
    table = Table(title="Held-out pages", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("page", "episodes", "success", "steps"):
        table.add_column(heading, justify="left" if heading == "page" else "right", no_wrap=True)
    was_learnt = True
    for page in pages:
        if was_learnt and not page.learnt:
            table.add_row(Text("never trained on:", "italic"))
        was_learnt = page.learnt
        table.add_row(
            page.page,
            str(page.after.num_scored),
            Text.assemble(
                f"{page.before.success:.2f} → ",
                (f"{page.after.success:.2f}", "bold red" if page.after.success == 0 else "bold"),
            ),
            f"{page.before.steps:.1f} → {page.after.steps:.1f}",
        )
    return table
