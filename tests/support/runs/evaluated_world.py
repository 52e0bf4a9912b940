"""Runs with versions to be evaluated, and results of evaluations, counted from episodes of given verdicts."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from ops.analysis.evaluation.counting import Counted, result_of
from ops.analysis.evaluation.identity import Model
from ops.analysis.evaluation.plan import Plan
from ops.analysis.evaluation.protocol import Apart, Judging, Protocol, TaskChoice
from ops.analysis.evaluation.result import EvaluationResult
from ops.analysis.evaluation.settings import settings_of
from ops.analysis.report.episode import ReportedEpisode
from ops.analysis.report.report import Report
from ops.analysis.report.seen import Seen
from ops.config.loading import load_config
from ops.run.folder import RunFolder
from ops.simulation.material import ensure_task_file
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.ids import RunName
from schemas.judge_config import OpenAIConfig, Price
from schemas.messages import Outcome, Split, StageUsage, TokenUsage, Verdict
from schemas.policy_config import PolicyConfig
from tests import builders
from tests.support.runs.reported_world import judged, step

S, F, X = Verdict.SUCCESS, Verdict.FAILURE, Verdict.EXCLUDED
_AS_EVER = Apart()


def model(folder: Path, text: str = "{}") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(text)
    return folder


def run_with_versions(tmp_path: Path) -> RunFolder:
    run, base = RunFolder(tmp_path / "run"), model(tmp_path / "base")
    ensure_task_file(tmp_path / "tests.jsonl", num_tasks=4)
    config = load_config("simulation", ["env_config.test_tasks=tests.jsonl", f"data_path={tmp_path}"])
    bus = BusConfig(run=RunName("r"), rubrics=("environment_v1", "rubric_v1"))
    policy = PolicyConfig(base_model=str(base), engine="simulated")
    run.create(dataclasses.replace(config, bus_config=bus, policy_config=policy), needed_bytes=0)
    model(run.checkpoints / "v000003-abc", '{"version": 3}')
    return run


def evaluated(
    verdicts: Mapping[str, Sequence[Verdict]],
    *,
    apart: Apart = _AS_EVER,
    seed: int = 0,
    num_tasks: int | None = None,
    seen: Seen | None = None,
) -> EvaluationResult:
    config = Config(
        feeder_config=FeederConfig(seed=seed),
        policy_config=PolicyConfig(engine="openai", base_model="m"),
        openai_config=OpenAIConfig(prices={"m": Price(input=2.0, output=10.0, cached_input=1.0)}),
        env_config=EnvConfig(test_tasks_repeat_times=max(map(len, verdicts.values()))),
    )
    plan = Plan(
        model=Model(name="m", kind="api"),
        folder=RunFolder(Path("out")),
        config=config,
        tasks_file=Path("tasks.jsonl"),
        tasks_sha256="x",
        recipe="default",
        num_tasks=num_tasks or len(verdicts),
        settings=settings_of(config, tasks_sha256="x", num_tasks=len(verdicts)),
        protocol=Protocol(name="p", differs=("words",), tasks=TaskChoice(file="t"), judge=Judging(name="j"), apart=apart),
    )
    counted = Counted(Report(source="s", run="r", rubric="environment_v1", seen=seen or Seen()), apart)
    for name, tries in verdicts.items():
        for verdict in tries:
            counted.add(one := played(name, verdict))
            counted.pay(one.steps[0].request)
    return result_of(counted, plan)


def played(name: str, verdict: Verdict) -> ReportedEpisode:
    task = replace(builders.task(name, split=Split.EVAL), difficulty=5 if name == "b" else 1)
    outcome = Outcome.DONE if verdict in (Verdict.SUCCESS, Verdict.FAILURE) else Outcome.TIMED_OUT
    of = builders.trajectory(task, outcome=outcome, num_steps=1)
    seen = step(0, "u")
    request = replace(seen.request, usage=TokenUsage(prompt=1000, completion=100, cached=400))
    seen = dataclasses.replace(seen, request=request)
    usage = (StageUsage(stage="s", model="j", num_calls=2, cost=0.25),)
    given = judged(of, verdict, usage=usage)
    return ReportedEpisode(of, given, (given,), (seen,))
