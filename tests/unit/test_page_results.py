"""Success by kind of page: what is counted for which."""

from dataclasses import replace

import msgspec
from rich.console import Console

from ops.monitor.run_watch import RunState
from ops.quickstart.page_results import PageResult, Played, page_results, page_table
from schemas.ids import PolicyVersion
from schemas.messages import Judgement, Split, Verdict
from tests.builders import task, trajectory


def _judged(page: str, version: int, verdict: Verdict, *, steps: int = 1) -> Judgement:
    name = f"{page}-{version}-{verdict}-{steps}"
    of = msgspec.structs.replace(task(name, split=Split.EVAL), policy_version=PolicyVersion(version), subdomain=page)
    ended = msgspec.structs.replace(trajectory(of), num_steps=steps)
    reward = {Verdict.SUCCESS: 1.0, Verdict.FAILURE: 0.0}.get(verdict)
    return Judgement(
        episode=of.episode, group=of.group, split=Split.EVAL, rubric="r", verdict=verdict, reward=reward, trajectory=ended
    )


_JUDGED = (
    _judged("tab", 0, Verdict.FAILURE, steps=7),
    _judged("tab", 0, Verdict.SUCCESS, steps=2),
    _judged("tab", 1, Verdict.FAILURE, steps=5),
    _judged("tab", 3, Verdict.SUCCESS, steps=2),
    _judged("login", 0, Verdict.FAILURE, steps=3),
    _judged("login", 3, Verdict.ERROR),
    _judged("login", 3, Verdict.FAILURE, steps=4),
    _judged("focus", 0, Verdict.SUCCESS),
    _judged("focus", 3, Verdict.FAILURE, steps=7),
    _judged("gone", 0, Verdict.SUCCESS),
)


def test_each_page_before_and_after_with_learnt_ones_first() -> None:
    assert page_results(_JUDGED, last=PolicyVersion(3), unseen_pages=["focus"]) == (
        PageResult(
            page="login",
            learnt=True,
            before=Played(num_scored=1, success=0.0, steps=3.0),
            after=Played(num_scored=1, success=0.0, steps=4.0),
        ),
        PageResult(
            page="tab",
            learnt=True,
            before=Played(num_scored=2, success=0.5, steps=4.5),
            after=Played(num_scored=1, success=1.0, steps=2.0),
        ),
        PageResult(
            page="focus",
            learnt=False,
            before=Played(num_scored=1, success=1.0, steps=1.0),
            after=Played(num_scored=1, success=0.0, steps=7.0),
        ),
    )


def test_pages_that_nobody_learns_are_waited_for_but_no_part_of_success() -> None:
    state = RunState(unseen_pages=frozenset(["focus"]))
    for judgement in _JUDGED:
        state.apply(judgement, 0.0)
    evaluation = state.evaluations[PolicyVersion(0)]
    assert (evaluation.num_judged, evaluation.num_scored, evaluation.num_successes) == (5, 4, 2)


def test_the_table_has_a_line_a_page_that_fits_a_terminal() -> None:
    console = Console(record=True, width=80)
    played = page_results(_JUDGED, last=PolicyVersion(3), unseen_pages=["focus"])
    longest = replace(played[0], page="click-collapsible-2-nodelay")
    console.print(page_table([*played, replace(longest, learnt=False)]))
    lines = console.export_text().splitlines()
    said = [line.split() for line in lines]
    assert ["tab", "1", "0.50", "→", "1.00", "4.5", "→", "2.0"] in said
    unseen = said.index(["never", "trained", "on:"])
    assert said[unseen + 1] == ["focus", "1", "1.00", "→", "0.00", "1.0", "→", "7.0"]
    assert said[unseen + 2][0] == longest.page
    assert max(map(len, lines)) <= 80
