"""Every judge that asks models on the 86 labelled ways through the demo shop: agreement with the labels, and calls.

    python -m benchmarks.judges_side_by_side

The model is a script that reads the texts of the screenshots it is shown: what differs is what each evaluator shows and asks.
How well a real model reads, a calibration against labels of people says.
"""

import logging
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import structlog
from msgspec import structs

from benchmarks.report import Report
from browser_workers.suites.shop.suite import NAME
from bus.evidence import Evidence
from bus.ports import Bus
from bus.presence import Status
from judges.endpoint.opening import open_endpoints
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling
from judges.published.judge import PublishedJudge
from judges.rubric.budget import open_budget
from judges.rubric.journal import Journal
from judges.rubric.judge import RubricJudge
from judges.rubric.prompts import committed_prompts
from judges.rubric.session import RecordedSessions
from ops.analysis.calibration.comparison import Truth, compare
from schemas.ids import EpisodeId, WorkerId
from schemas.judge_config import JudgeConfig, OpenAIConfig
from schemas.messages import Action, Judgement, Observation, Role, Trajectory
from tests import builders
from tests.support.browsers.labelled_shop import Kind, LabelledShop, labelled
from tests.support.browsers.page_plays import SUBJECTS, play, playing
from tests.support.judging.endpoint_replies import Said
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.published_reader import PublishedReader, demands
from tests.support.judging.published_world import EVALUATORS, PROMPTS
from tests.support.judging.reading_model import ReadingModel
from tests.support.judging.scripted_endpoint import scripted_endpoint
from tests.support.texts.page_text import ReadBrowser, ScreenshotTexts

_SIZE = (1024, 1400)
"""Of the window: everything that a fact asks for is in view without scrolling."""
_OF_RUBRIC = ("blocking_verdict", "keypoint_verdict", "criterion_verdict")
_WORKER = WorkerId("judge-1")


@dataclass(frozen=True)
class Row:
    """One judge beside the labels."""

    judge: str
    compared: int
    agreement: float | None
    kappa: float | None
    precision: float | None
    recall: float | None
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    calls: int
    """Answers of models that the judgements took."""


def follow(observation: Observation) -> Action:
    assert observation.oracle_action is not None, f"{observation.url} has nothing for the next step of this way"
    return observation.oracle_action


@asynccontextmanager
async def _opened(name: str, bus: Bus, base_url: str) -> AsyncIterator[Judge]:
    config = JudgeConfig(judge=name)
    openai = OpenAIConfig(model="reader", base_url=base_url, openai_api_key_env_var="READER_KEY")
    status = Status(Role.JUDGE, _WORKER)
    async with (
        open_endpoints(openai, {"READER_KEY": "none"}) as endpoints,
        open_budget(bus, SUBJECTS, config, status) as budget,
    ):
        journal = Journal(bus, SUBJECTS, rubric=config.rubric, worker=_WORKER)
        sessions = RecordedSessions(endpoints=endpoints, journal=journal, budget=budget, config=openai, status=status)
        if name == RubricJudge.name:
            yield RubricJudge(sessions, committed_prompts(name), config)
        else:
            yield PublishedJudge(name, EVALUATORS[name], sessions, PROMPTS[name], config)


def _judgement(name: str, of: Trajectory, ruling: Ruling) -> Judgement:
    given = builders.judgement(of, ruling.reward, rubric=name)
    return structs.replace(given, verdict=ruling.verdict, stages=ruling.stages, usage=ruling.usage, error=ruling.error)


async def _judged(name: str, bus: Bus, base_url: str, played: Sequence[Trajectory]) -> Mapping[EpisodeId, Judgement]:
    async with _opened(name, bus, base_url) as judge:
        return {
            of.episode: _judgement(name, of, await judge.judge(JudgedEpisode(of, Evidence(bus, SUBJECTS)))) for of in played
        }


async def main() -> None:
    ways, texts = labelled(), ScreenshotTexts()
    tasks = {way.task().episode: way.task() for way in ways}
    truths = {way.task().episode: Truth.labelled(way.kind is Kind.SUCCESS, way.kind.value) for way in ways}
    rubric, published = ReadingModel(texts.by_digest), PublishedReader(texts.by_digest, demands(tasks.values()))

    def read(asked: Asked) -> Said:
        schema = asked.body["response_format"]["json_schema"]["name"]
        return rubric(asked) if schema in _OF_RUBRIC else published(asked)

    with tempfile.TemporaryDirectory() as folder:
        async with (
            playing(
                Path(folder),
                follow,
                {NAME: LabelledShop()},
                size=_SIZE,
                watched=lambda browser: ReadBrowser(browser, texts),
            ) as bus,
            scripted_endpoint(read) as endpoint,
        ):
            played = await play(bus, tuple(tasks.values()))
            judged = {name: await _judged(name, bus, endpoint.base_url, played) for name in (RubricJudge.name, *EVALUATORS)}
    Report(
        name="judges_side_by_side",
        title=f"Judges on the {len(ways)} labelled ways through the demo shop",
        rows=[_row(name, truths, judgements) for name, judgements in judged.items()],
        notes=("the model is a script that reads the texts of the screenshots it is shown",),
    ).publish()


def _row(name: str, truths: Mapping[EpisodeId, Truth], judgements: Mapping[EpisodeId, Judgement]) -> Row:
    found = compare(truths, judgements)
    confusion = found.confusion
    return Row(
        judge=name,
        compared=confusion.number,
        agreement=confusion.agreement.value,
        kappa=confusion.kappa,
        precision=confusion.precision.value,
        recall=confusion.recall.value,
        true_positives=confusion.true_positives,
        false_positives=confusion.false_positives,
        false_negatives=confusion.false_negatives,
        true_negatives=confusion.true_negatives,
        calls=found.spending.num_calls,
    )


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    anyio.run(main)
