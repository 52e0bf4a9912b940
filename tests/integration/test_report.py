"""A report's numbers are those that a plain loop over the streams counts, and the same from the run's archive."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bus.jetstream import JetStreamBus
from ops.analysis.report.reporting import report_on
from ops.analysis.report.selection import Selection
from schemas.messages import Judgement, Observation, Split, StepRequest, Task, Verdict
from schemas.site import site_of
from tests.contract.backends import SUBJECTS
from tests.support.runs import archive_world
from tests.support.runs.reported_world import OTHER, RUBRIC, fill
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
NUM_EPISODES = 300
Json = dict[str, Any]


async def reported(source: Path, out: Path) -> Json:
    assert await report_on(source, out, rubric=None, selection=Selection()) == 0
    figures: Json = json.loads((out / "report.json").read_text())
    return figures


async def test_the_numbers_agree_with_the_streams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running_run(tmp_path / "run") as bus:
        await fill(bus, SUBJECTS, NUM_EPISODES)
        figures = await reported(tmp_path / "run", tmp_path / "out")
        printed = capsys.readouterr().out
        trajectories = [record.message for record in await bus.history(SUBJECTS.trajectories, "test.trajectory.>")]
        judged = [record.message for record in await bus.history(SUBJECTS.judged, "test.judged.>")]
        assert figures["num_episodes"] == len(trajectories) == NUM_EPISODES
        assert f"{NUM_EPISODES:,}" in printed
        check_success(figures, trajectories, judged)
        check_judges(figures, judged)
        check_ends(figures, trajectories, judged)
        await check_steps(figures, bus, trajectories)
        archive = await archive_world.archive(bus, SUBJECTS, tmp_path / "archive", episodes_per_part=90)
        archive.config.write_text((tmp_path / "run" / "config.yaml").read_text())
    archived = await reported(archive.path, tmp_path / "from_archive")
    assert archived | {"source": figures["source"]} == figures
    check_page((tmp_path / "out" / "report.html").read_text())
    assert {path.name for path in (tmp_path / "out").glob("*.svg")} == {
        "success_by_version.svg",
        "success_by_difficulty.svg",
        "step_limited_success.svg",
    }


def verdicts_by(judged: list[Any], rubric: str) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    for one in judged:
        assert isinstance(one, Judgement)
        if one.rubric == rubric:
            found[one.episode] = one.verdict
    return found


def seen_before(task: Task, trajectories: list[Any]) -> str:
    """What training had of it under a lower version."""
    earlier = [
        each.task
        for each in trajectories
        if each.task.split is Split.TRAIN and not each.task.greedy and each.task.policy_version < task.policy_version
    ]
    if any((other.website, other.instruction) == (task.website, task.instruction) for other in earlier):
        return "the task"
    return "its site only" if any(site_of(other.website) == site_of(task.website) for other in earlier) else "neither"


def check_success(figures: Json, trajectories: list[Any], judged: list[Any]) -> None:
    """Plain counts: split, difficulty class, site, domain and version of every episode, by the run's own rubric."""
    verdicts = verdicts_by(judged, RUBRIC)
    counts: dict[tuple[str, str, str], list[int]] = {}
    for trajectory in trajectories:
        task = trajectory.task
        kind = "eval" if task.split is Split.EVAL else "train"
        if kind == "train" and (task.demonstrate or task.greedy):
            kind = "demonstration" if task.demonstrate else "greedy"
        classes = ["unknown"] + ["easy"] * 3 + ["medium"] * 3 + ["hard"] * 3
        played = trajectory.versions[0] if trajectory.versions and kind != "eval" else task.policy_version
        verdict = verdicts.get(task.episode)
        for grouping, label in (
            ("overall", ""),
            ("by_difficulty", classes[task.difficulty]),
            ("by_site", site_of(task.website)),
            ("by_domain", task.domain or "unknown"),
            ("by_version", str(played)),
            ("by_distribution", task.distribution or "unknown"),
            ("by_published_split", task.published_split or "unknown"),
            ("by_seen", seen_before(task, trajectories)),
        ):
            count = counts.setdefault((grouping, label, kind), [0, 0, 0])
            count[0] += 1
            count[1] += verdict in (Verdict.SUCCESS, Verdict.FAILURE)
            count[2] += verdict is Verdict.SUCCESS
    said = {}
    for grouping, groups in figures["success"].items():
        for label, tallies in {"": groups}.items() if grouping == "overall" else groups.items():
            for kind, tally in tallies.items():
                said[grouping, label, kind] = [tally["num_episodes"], tally["num_scored"], tally["num_successes"]]
                if tally["num_scored"]:
                    wanted = 0.25 + 0.5 * tally["num_successes"] / tally["num_scored"]
                    assert tally["reward"] == pytest.approx(wanted), "every success was worth 0.75, every failure 0.25"
    assert {place: count for place, count in said.items() if place[0] != "by_family"} == counts


def check_judges(figures: Json, judged: list[Any]) -> None:
    for rubric in (RUBRIC, OTHER):
        mine = [one for one in judged if one.rubric == rubric]
        said = figures["judging"]["rubrics"][rubric]
        assert said["verdicts"] == dict(Counter(one.verdict.value for one in mine))
        assert said["spending"]["num_calls"] == sum(2 for one in mine if one.usage)
        assert said["spending"]["cost"] == pytest.approx(sum(0.125 for one in mine if one.usage))
    first, second = verdicts_by(judged, RUBRIC), verdicts_by(judged, OTHER)
    decided = (Verdict.SUCCESS, Verdict.FAILURE)
    both = [episode for episode in first.keys() & second.keys() if first[episode] in decided and second[episode] in decided]
    [pair] = figures["judging"]["disagreement"]
    assert (pair["count"], pair["number"]) == (sum(first[one] is not second[one] for one in both), len(both))
    assert sum(figures["workers"]["judges"].values()) == len(judged)


def check_ends(figures: Json, trajectories: list[Any], judged: list[Any]) -> None:
    verdicts = verdicts_by(judged, RUBRIC)
    outcomes = Counter(one.outcome.value for one in trajectories)
    assert {outcome: sum(found.values()) for outcome, found in figures["causes"]["outcomes"].items()} == outcomes
    causes: Counter[str] = Counter()
    for counts in figures["causes"]["counts"].values():
        causes.update(counts)
    num_successes = sum(verdict is Verdict.SUCCESS for verdict in verdicts.values())
    assert causes.total() == NUM_EPISODES - num_successes, "each of them has one cause"
    assert causes["timed out"] == outcomes["timed_out"]
    assert causes["cancelled"] == outcomes["cancelled"]
    assert causes["not judged"] == sum(one.outcome.finished and one.episode not in verdicts for one in trajectories)
    assert figures["causes"]["reasons"]["browser or policy failed"] == {"page <address> crashed": outcomes["failed"]}
    curves = figures["step_limits"]
    for kind, split in (("eval", Split.EVAL),):
        scored = [one for one in trajectories if one.task.split is split]
        scored = [one for one in scored if verdicts.get(one.episode) in (Verdict.SUCCESS, Verdict.FAILURE)]
        for limit, share in enumerate(curves[kind], 1):
            hits = sum(verdicts[one.episode] is Verdict.SUCCESS and one.num_steps <= limit for one in scored)
            assert (share["count"], share["number"]) == (hits, len(scored))


async def check_steps(figures: Json, bus: JetStreamBus, trajectories: list[Any]) -> None:
    """Tokens, workers and repeated steps, from the chains."""
    tokens: Counter[str] = Counter()
    workers: Counter[str] = Counter()
    unchanged = redone = 0
    for trajectory in trajectories:
        task = trajectory.task
        chain = [record.message for record in await bus.history(SUBJECTS.episodes(0), SUBJECTS.chain(task.episode))]
        seen = [one for one in chain if isinstance(one, Observation)]
        answers = [one for one in chain if isinstance(one, StepRequest)]
        kind = "eval" if task.split is Split.EVAL else "other"
        done = []
        for observation, step in zip(seen, answers, strict=True):
            tokens[kind] += step.usage.prompt if step.usage else len(step.prompt_tokens)
            workers[step.worker] += 1
            if step.parsed:
                redone += (observation.url, step.action) in done
                done.append((observation.url, step.action))
        unchanged += sum(observation.same_screenshot for observation in seen[1:])
    assert figures["usage"]["eval"]["prompt_tokens"]["total"] == tokens["eval"]
    assert sum(kind["prompt_tokens"]["total"] for kind in figures["usage"].values()) == tokens.total()
    assert figures["workers"]["policies"] == dict(workers)
    within = figures["repetition"]["within_episodes"].values()
    assert (sum(end["num_unchanged"] for end in within), sum(end["num_redone"] for end in within)) == (unchanged, redone)


def check_page(page: str) -> None:
    assert "default-src 'none'" in page
    assert "<script" not in page.lower(), "a domain of the tasks is called so"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace('http-equiv="', ""), "nothing is loaded"
