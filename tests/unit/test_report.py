"""Every statistic of a report by value, and what is shown of it."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from bus.memory import MemoryBus
from ops.analysis.report.causes import Causes, cause_of, reason
from ops.analysis.report.charts import draw, draw_file, ticks
from ops.analysis.report.episode import ReportedEpisode
from ops.analysis.report.figures import as_json
from ops.analysis.report.judging import Judging
from ops.analysis.report.labels import difficulty_of, domain_of, family_of, kind_of, site_label, version_of
from ops.analysis.report.limits import StepLimits
from ops.analysis.report.page import page
from ops.analysis.report.repetition import Repeats, gini, repeats_of, share_of_top
from ops.analysis.report.report import Report, gather
from ops.analysis.report.reporting import about, title_of, write
from ops.analysis.report.sections import brief, sections
from ops.analysis.report.seen import Seen
from ops.analysis.report.selection import Selection, counting_rubric, moment_s
from ops.analysis.report.success import Tally, total
from ops.analysis.report.success_sections import headlines
from ops.analysis.report.tables import Chart, Headline, Series, shown
from ops.analysis.report.terminal import show
from ops.analysis.report.usage import Usage
from ops.archive.exports.played import PlayedStep
from ops.archive.stream_source import StreamSource
from ops.statistics.shares import Share
from ops.statistics.spread import Values
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion, RunName, WorkerId
from schemas.messages import (
    Action,
    ActionKind,
    Judgement,
    Outcome,
    Split,
    StageVerdict,
    Timings,
    TokenUsage,
    Verdict,
)
from tests import builders
from tests.contract.backends import SUBJECTS
from tests.support.runs.reported_world import CLICK, OTHER, RUBRIC, fill, judged, step

pytestmark = pytest.mark.anyio
WAIT = Action(kind=ActionKind.WAIT)


def episode(
    verdict: Verdict | None = Verdict.SUCCESS,
    *,
    split: Split = Split.TRAIN,
    num_steps: int = 2,
    outcome: Outcome = Outcome.DONE,
    steps: Sequence[PlayedStep] = (),
    **fields: object,
) -> ReportedEpisode:
    of = replace(builders.trajectory(builders.task(split=split), outcome=outcome, num_steps=num_steps), **fields)
    given = judged(of, verdict) if verdict else None
    return ReportedEpisode(of, given, (given,) if given else (), tuple(steps))


# labels -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difficulty", "name"), [(0, "unknown"), (1, "easy"), (3, "easy"), (4, "medium"), (6, "medium"), (7, "hard"), (12, "hard")]
)
def test_difficulties_are_webgyms_classes(difficulty: int, name: str) -> None:
    assert difficulty_of(replace(builders.task(), difficulty=difficulty)) == name


@pytest.mark.parametrize(
    ("website", "family", "site"),
    [
        ("demo:click_button?seed=3", "demo:click_button", "demo"),
        ("https://www.Example.org/a?b", "web", "example.org"),
        ("http://example.org:8443", "web", "example.org:8443"),
        ("localhost:3000/x", "web", "localhost:3000"),
        ("", "web", "unknown"),
    ],
)
def test_pages_belong_to_a_family_and_a_site(website: str, family: str, site: str) -> None:
    task = replace(builders.task(), website=website)
    assert (family_of(task), site_label(task)) == (family, site)


def test_tasks_without_labels_are_unknown_and_kinds_are_apart() -> None:
    task = builders.task()
    assert domain_of(task) == "unknown"
    assert [kind_of(replace(task, **fields)) for fields in ({}, {"greedy": True}, {"demonstrate": True})] == [
        "train",
        "greedy",
        "demonstration",
    ]
    assert kind_of(builders.task(split=Split.EVAL)) == "eval"


def test_an_episode_counts_for_the_version_that_began_it() -> None:
    played = episode(versions=(PolicyVersion(3), PolicyVersion(4))).trajectory
    assert version_of(played) == 3
    assert version_of(replace(played, versions=())) == 0, "the newest at admission"
    evaluated = replace(builders.task(split=Split.EVAL), policy_version=PolicyVersion(2))
    assert version_of(replace(played, task=evaluated)) == 2, "its round"


# success ----------------------------------------------------------------------------------------------------------------


def test_only_episodes_with_a_verdict_count_as_success_or_failure() -> None:
    tally = Tally()
    for verdict in (Verdict.SUCCESS, Verdict.FAILURE, Verdict.FAILURE, Verdict.EXCLUDED, Verdict.ERROR, None):
        tally.add(episode(verdict, num_unparsed=1))
    assert (tally.num_episodes, tally.success) == (6, Share(1, 3))
    assert tally.reward == pytest.approx(1 / 3)
    assert tally.parsed == Share(6, 12)
    assert total({"a": tally, "b": tally}).num_scored == 6
    assert (Tally().reward, Tally().success.value) == (None, None)


def test_success_under_a_limit_of_n_steps() -> None:
    limits = StepLimits()
    for verdict, num_steps in ((Verdict.SUCCESS, 1), (Verdict.SUCCESS, 3), (Verdict.FAILURE, 4), (None, 9)):
        limits.add(episode(verdict, num_steps=num_steps))
    assert limits.by_kind["train"].curve() == [Share(1, 3), Share(1, 3), Share(2, 3), Share(2, 3)]


def asked(instruction: str, website: str, *, version: int, split: Split = Split.EVAL) -> ReportedEpisode:
    one = episode(Verdict.SUCCESS if split is Split.EVAL else Verdict.FAILURE, split=split)
    task = replace(one.task, instruction=instruction, website=website, policy_version=PolicyVersion(version))
    return dataclasses.replace(one, trajectory=replace(one.trajectory, task=task))


def test_success_is_told_by_what_training_had_played_under_lower_versions() -> None:
    played = [
        asked("find", "https://a.example", version=2),
        asked("find", "https://www.a.example/other", version=2),
        asked("find", "https://b.example", version=2),
        asked("find", "https://a.example", version=1),
        asked("find", "https://a.example", version=1, split=Split.TRAIN),
        asked("find", "https://a.example", version=3, split=Split.TRAIN),
    ]
    for order in (played, played[::-1]):
        seen = Seen()
        for one in order:
            seen.note(one.task)
            seen.add(one)
        found = seen.tallies()
        assert {label: {kind: tally.num_episodes for kind, tally in kinds.items()} for label, kinds in found.items()} == {
            "the task": {"eval": 1, "train": 1},
            "its site only": {"eval": 1},
            "neither": {"eval": 2, "train": 1},
        }
    assert found["the task"]["train"].success == Share(0, 1)


@given(
    order=st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 4), st.sampled_from(list(Split))), max_size=12
    )
)
def test_what_training_had_played_is_told_alike_in_any_order(order: list[tuple[str, str, int, Split]]) -> None:
    played = [asked(words, f"https://{site}.example", version=version, split=split) for words, site, version, split in order]
    seen, counts = Seen(), Counter[tuple[str, str]]()
    for one in played:
        seen.note(one.task)
        seen.add(one)
    for words, site, version, split in order:
        earlier = [(other[0] == words, other[1] == site) for other in order if other[3] is Split.TRAIN and other[2] < version]
        label = "the task" if (True, True) in earlier else "its site only" if any(e[1] for e in earlier) else "neither"
        counts[label, split.value] += 1
    trained = any(split is Split.TRAIN for *_, split in order)
    found = {(label, kind): tally.num_episodes for label, kinds in seen.tallies().items() for kind, tally in kinds.items()}
    assert found == (counts if trained else {})


def test_episodes_of_tasks_that_are_known_are_not_kept() -> None:
    seen = Seen()
    for version in range(200):
        for words in "abc":
            one = asked(words, "https://a.example", version=version, split=Split.TRAIN)
            seen.note(one.task)
            seen.add(one)
    assert sum(map(len, seen.waiting.values())) == 3


def test_nothing_is_said_of_what_was_seen_where_no_training_is_known() -> None:
    seen = Seen()
    one = asked("find", "https://a.example", version=2)
    seen.note(one.task)
    seen.add(one)
    assert seen.tallies() == {}


def test_success_is_told_by_distribution_and_published_split_where_tasks_say_them() -> None:
    report = Report(source="s", run="r", rubric=RUBRIC)
    for distribution, published in (("id", "hard"), ("ood", "hard"), ("ood", "")):
        one = episode(Verdict.SUCCESS if distribution == "id" else Verdict.FAILURE, split=Split.EVAL)
        task = replace(one.task, distribution=distribution, published_split=published)
        report.add_reported(dataclasses.replace(one, trajectory=replace(one.trajectory, task=task)))
    figures = as_json(report)["success"]
    assert figures["by_distribution"]["ood"]["eval"]["success"]["number"] == 2
    assert figures["by_published_split"].keys() == {"hard", "unknown"}
    tables = {table.title: table.rows for section in sections(report, top=8)[1] for table in section.tables}
    assert tables["By distribution"] == (("out (ood)", 2, Share(0, 2)), ("in (id)", 1, Share(1, 1)))
    assert tables["By published split"] == (("hard", 2, Share(1, 2)), ("unknown", 1, Share(0, 1)))
    plain = Report(source="s", run="r", rubric=RUBRIC)
    plain.add_reported(episode())
    titles = {table.title for section in sections(plain, top=8)[1] for table in section.tables}
    assert titles.isdisjoint({"By distribution", "By published split", "By what training had played before"})


async def test_training_that_a_selection_leaves_out_was_seen_all_the_same() -> None:
    bus = MemoryBus(SUBJECTS)
    await fill(bus, SUBJECTS, 400)
    source = StreamSource(bus, SUBJECTS)
    both = await gather(Report(source="s", run="r", rubric=RUBRIC), source.episodes())
    chosen = Report(source="s", run="r", rubric=RUBRIC, selection=Selection(split=Split.EVAL))
    alone = await gather(chosen, source.episodes())
    for label, kinds in alone.seen.tallies().items():
        assert kinds["eval"].num_episodes == both.seen.tallies()[label]["eval"].num_episodes > 0
    assert len(alone.seen.tallies()) > 1


# failures ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "verdict", "fields", "cause"),
    [
        (Outcome.DONE, Verdict.SUCCESS, {}, None),
        (Outcome.ANSWERED, Verdict.FAILURE, {}, ("wrong answer", "not passed: facts")),
        (Outcome.DONE, Verdict.FAILURE, {}, ("wrong end of the page", "not passed: facts")),
        (Outcome.STEP_LIMIT, Verdict.FAILURE, {}, ("step limit", "not passed: facts")),
        (Outcome.STEP_LIMIT, Verdict.FAILURE, {"num_unparsed": 2}, ("unparsed output", "more than half of the steps")),
        (Outcome.STEP_LIMIT, Verdict.FAILURE, {"num_unparsed": 1}, ("step limit", "not passed: facts")),
        (Outcome.DONE, Verdict.FAILURE, {"navigation_error": "net::ERR 5"}, ("first page not opened", "net::ERR #")),
        (
            Outcome.FAILED,
            Verdict.EXCLUDED,
            {"error": "page http://a/b died"},
            ("browser or policy failed", "page <address> died"),
        ),
        (Outcome.TIMED_OUT, None, {"error": "not over after 9 s"}, ("timed out", "not over after # s")),
        (Outcome.CANCELLED, Verdict.EXCLUDED, {}, ("cancelled", "")),
        (Outcome.BLOCKED, Verdict.EXCLUDED, {}, ("blocked by the site", "")),
        (Outcome.DONE, None, {}, ("not judged", "")),
        (Outcome.DONE, Verdict.ERROR, {}, ("judge error", "said so")),
        (Outcome.DONE, Verdict.EXCLUDED, {}, ("excluded by the judge", "said so")),
    ],
)
def test_every_failure_has_one_cause(
    outcome: Outcome, verdict: Verdict | None, fields: dict[str, object], cause: tuple[str, str] | None
) -> None:
    of = replace(builders.trajectory(builders.task(), outcome=outcome, num_steps=2), **fields)
    stages = (StageVerdict(stage="blocking", passed=True), StageVerdict(stage="facts", passed=False))
    ruled = judged(of, verdict, error="said so", stages=stages) if verdict else None
    assert cause_of(of, ruled) == cause


def test_a_site_that_the_judge_found_blocked_is_no_exclusion() -> None:
    of = builders.trajectory(builders.task())
    assert cause_of(of, judged(of, Verdict.EXCLUDED, blocked=True)) == ("blocked by the site", "")


def test_reasons_are_bounded_in_length_and_number() -> None:
    assert reason("") == ""
    assert reason("x" * 1000 + "\nsecond") == "x" * 100
    causes = Causes()
    for index in range(1005):
        letters = "".join(chr(97 + int(digit)) for digit in str(index))
        causes.add(episode(None, outcome=Outcome.FAILED, error=f"error {letters}"))
    assert len(causes.reasons["browser or policy failed"]) == 1001
    assert causes.reasons["browser or policy failed"]["other reasons"] == 5


# usage, judges, repetition ----------------------------------------------------------------------------------------------


def test_spreads_are_exact() -> None:
    spread = Values(float(value) for value in range(1, 101)).spread()
    assert (spread.number, spread.mean, spread.p50, spread.p95, spread.total) == (100, 50.5, 50.0, 95.0, 5050.0)
    assert (Values().spread().mean, Values().spread().p95) == (None, None)


def test_tokens_are_those_of_whole_episodes_and_seconds_those_of_played_ones() -> None:
    usage = Usage()
    timings = Timings(reset_s=1.0, observe_s=2.0, policy_s=3.0, act_s=4.0, total_s=11.0)
    steps = (step(0, "a"), step(1, "b"))
    usage.add(episode(steps=steps, timings=timings))
    counted = replace(steps[0].request, usage=TokenUsage(prompt=700, completion=50))
    usage.add(episode(num_steps=1, steps=(PlayedStep(steps[0].observation, counted, False),), timings=timings))
    usage.add(episode(num_steps=3, steps=steps, timings=timings))
    usage.add(episode(None, num_steps=0, worker=WorkerId("")))
    spreads = usage.spreads()["train"]
    assert (spreads["steps"].number, spreads["steps"].total) == (4, 6.0)
    assert (spreads["prompt_tokens"].number, spreads["prompt_tokens"].total) == (2, 706.0)
    assert (spreads["completion_tokens"].total, spreads["step_completion_tokens"].p95) == (54.0, 50.0)
    assert (spreads["total_s"].number, spreads["policy_s"].mean, spreads["step_generated_s"].mean) == (3, 3.0, 1.5)


def test_rubrics_differ_where_both_came_to_a_verdict() -> None:
    judging = Judging()
    pairs = [("success", "success"), ("success", "failure"), ("failure", "success"), ("error", "failure")]
    for mine, other in pairs:
        one = episode(Verdict(mine))
        stages = (StageVerdict(stage="facts", passed=other == "success", votes=(True, True, False)),)
        both = (*one.judgements, judged(one.trajectory, Verdict(other), rubric=OTHER, stages=stages))
        judging.add(ReportedEpisode(one.trajectory, one.judgement, both))
    assert judging.pairs[RUBRIC, OTHER].disagreement == Share(2, 3)
    assert judging.rubrics[RUBRIC].verdicts == {"success": 2, "failure": 1, "error": 1}
    stage = judging.rubrics[OTHER].stages["facts"]
    assert stage.passed == Share(2, 4)
    assert stage.vote_agreement == pytest.approx(0.5)


def test_returns_loops_and_steps_without_effect_are_counted() -> None:
    steps = (
        step(0, "a"),
        step(1, "b", WAIT, changed_nothing=True),
        step(2, "b", WAIT),
        step(3, "a", WAIT),
        step(4, "b", WAIT, parsed=False),
        step(5, "b", CLICK, parsed=False),
    )
    last = replace(builders.observation(builders.task(), 6), url="a")
    assert repeats_of(steps, last) == Repeats(
        num_steps=6, num_moves=4, num_returns=3, num_same_actions=2, num_redone=1, num_unchanged=1
    )
    assert repeats_of((), None) == Repeats()


def test_visits_are_even_or_not() -> None:
    assert gini([4, 4, 4]) == 0
    assert gini([0, 0, 0, 12]) == 0.75
    assert gini([1, 2, 3, 4]) == pytest.approx(0.25)
    assert gini([]) is None
    assert share_of_top([5, 1, 3, 1], top=2) == Share(8, 10)


# selection --------------------------------------------------------------------------------------------------------------


def test_whose_judgements_count() -> None:
    assert counting_rubric(None, {"a", "own"}, "own") == "own"
    assert counting_rubric(None, {"a"}, "own") == "a"
    assert counting_rubric(None, set(), "own") == "own"
    assert counting_rubric("a", {"a", "b"}, "own") == "a"
    with pytest.raises(ConfigurationError, match="judged by a, b: choose one with --rubric"):
        counting_rubric(None, {"b", "a"}, "own")
    with pytest.raises(ConfigurationError, match="nothing is judged by c there, only by a"):
        counting_rubric("c", {"a"}, "own")


def test_moments_are_read_or_refused() -> None:
    assert moment_s("--since", None) is None
    assert moment_s("--since", "2h", clock=lambda: 10_000.0) == 2800.0
    assert moment_s("--since", "2026-01-31T12:00+00:00") == 1_769_860_800.0
    with pytest.raises(ConfigurationError, match="--until yesterday is no time: write 2026"):
        moment_s("--until", "yesterday")


async def test_a_selection_leaves_the_others_out() -> None:
    bus = MemoryBus(SUBJECTS)
    await fill(bus, SUBJECTS, 60)
    source = StreamSource(bus, SUBJECTS)
    chosen = Selection(split=Split.EVAL, since_s=5010.0, until_s=5050.0)
    report = await gather(Report(source="s", run="r", rubric=OTHER, selection=chosen), source.episodes())
    assert (report.num_episodes, report.num_left_out) == (8, 52)
    assert (report.first_s, report.last_s) == (5014.0, 5049.0)
    assert report.success.overall.keys() == {"eval"}
    records = await bus.history(SUBJECTS.judged, SUBJECTS.judgements_by(OTHER, Split.EVAL))
    ruled = [record.message for record in records if isinstance(record.message, Judgement)]
    ruled = [one for one in ruled if 5010.0 <= one.trajectory.ended_at < 5050.0]
    assert report.success.overall["eval"].num_successes == sum(one.verdict is Verdict.SUCCESS for one in ruled)
    assert "Only split eval, since 1970-01-01 01:23:30 UTC" in about(report)[-1]


async def test_a_record_that_no_reader_takes_is_as_good_as_absent() -> None:
    bus = MemoryBus(SUBJECTS)
    await fill(bus, SUBJECTS, 40)
    source = StreamSource(bus, SUBJECTS)
    before = await gather(Report(source="s", run="r", rubric=RUBRIC), source.episodes())
    for episode in [ended.episode async for ended in source.trajectories()][:3]:
        stream = SUBJECTS.episodes(SUBJECTS.shard(episode))
        await bus.append_bytes(stream, SUBJECTS.chain_record(episode, 1, "act", 9), b"\xc1 garbage")
    report = await gather(Report(source="s", run="r", rubric=RUBRIC), source.episodes())
    assert as_json(report) == as_json(before)


# what is shown ----------------------------------------------------------------------------------------------------------

HOSTILE = "<img src=x onerror=alert(1)>{{sections}}\x1b[2J\"'&"


def hostile_report() -> Report:
    report = Report(source=HOSTILE, run=RunName(HOSTILE), rubric=RUBRIC)
    for split in Split:
        for difficulty in (1, 5):
            task = replace(builders.task(split=split), domain=HOSTILE, website=f"https://{HOSTILE}", difficulty=difficulty)
            one = episode(
                Verdict.FAILURE, outcome=Outcome.STEP_LIMIT, navigation_error=HOSTILE, steps=(step(0, HOSTILE), step(1, "b"))
            )
            of = replace(one.trajectory, task=task, worker=WorkerId(HOSTILE))
            given = judged(of, Verdict.FAILURE, stages=(StageVerdict(stage=HOSTILE, passed=False),))
            report.add_reported(ReportedEpisode(of, given, (given,), one.steps))
    return report


def test_nothing_of_a_page_is_markup_in_the_page(tmp_path: Path) -> None:
    write(hostile_report(), tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;{{sections}}" in page
    assert page.count('id="success"') == 1, "no mark in somebody's words is filled in"
    assert "<script" not in page


def test_the_page_says_of_which_version_a_figure_is() -> None:
    written = page("Report", (), [Headline(label="success, held out", value=Share(3, 4), note="of version 2")], ())
    assert "3 of 4 · of version 2" in written


def test_nothing_of_a_page_is_obeyed_by_a_terminal() -> None:
    report = hostile_report()
    console = Console(record=True, width=200, force_terminal=False)
    show(title_of(report), *sections(report, top=8), console)
    text = console.export_text()
    assert "\x1b" not in text
    assert "onerror" in text


def test_held_out_success_is_the_newest_versions_and_not_one_of_all_pooled() -> None:
    report = Report(source="s", run="r", rubric=RUBRIC)
    for version, verdict in ((0, Verdict.FAILURE), (0, Verdict.FAILURE), (30, Verdict.SUCCESS)):
        of = replace(builders.task(split=Split.EVAL), policy_version=PolicyVersion(version))
        report.add_reported(episode(verdict, split=Split.EVAL, task=of))
    headline = next(each for each in headlines(report) if each.label == "success, held out")
    assert headline.value == Share(1, 1)
    assert headline.note.startswith("of version 30; of version 0 0.0 %")


def test_the_brief_form_fits_on_a_screen_and_names_the_newest_version_first() -> None:
    report = Report(source="s", run="r", rubric=RUBRIC)
    for version in range(40):
        report.add_reported(episode(Verdict.FAILURE, versions=(PolicyVersion(version),)))
    console = Console(record=True, width=100)
    show(title_of(report), headlines(report), brief(report, top=5), console)
    lines = console.export_text().splitlines()
    assert len(lines) <= 40
    assert [line.split()[0] for line in lines if line[:1].isdigit()] == ["39", "38", "37", "36", "35"]


def test_a_report_on_nothing_is_shown(tmp_path: Path) -> None:
    report = Report(source="s", run="r", rubric=RUBRIC)
    write(report, tmp_path)
    show("t", *sections(report, top=8), Console(record=True))
    assert as_json(report)["num_episodes"] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_charts_draw_every_point_with_its_interval() -> None:
    points = ((0.0, Share(1, 2)), (1.0, Share(0, 0)), (2.0, Share(2, 2)))
    lines = Chart(name="n", title="<b>", axis="a&b", series=(Series(name="s", points=points, joined=False),))
    svg = draw(lines)
    assert svg.count("<circle") == 2, "nothing is drawn where there is nothing"
    assert svg.count("whisker") == 2
    assert "<b>" not in svg
    assert "a&amp;b" in svg
    bars = Chart(name="n", title="t", axis="a", series=(Series(name="s", points=points),), labels=("x", "y", "z"))
    assert draw(bars).count('class="column"') == 2
    assert draw_file(bars).count("<style>") == 1
    assert ticks(0, 1000) == [0, 200, 400, 600, 800, 1000]
    assert ticks(3, 4) == [3, 4]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (4.6e-7, "4.6e-07"),
        (0.5, "0.500"),
        (1.234, "1.23"),
        (45.67, "45.7"),
        (12345.6, "12,346"),
        (12345, "12,345"),
    ],
)
def test_figures_have_as_many_digits_as_count(cell: float | None, text: str) -> None:
    assert shown(cell) == text
