"""Every key of `judge_config` takes effect, through the composition that a run uses."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from bus.background import background
from bus.blocklist import read_blocklist
from bus.memory import MemoryBus
from bus.presence import Status
from judges.composite import CompositeJudge
from ops.roles.judge import open_judge
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.extensions import JUDGES
from schemas.ids import WorkerId
from schemas.messages import Judgement, Role, Verdict
from tests.deadlines import HANGS_S
from tests.integration.test_openai_config import of_file
from tests.support.judging.asked_judge import (
    SUBJECTS,
    answered,
    calls,
    hoped_for,
    judgements,
    judging,
    kind_of,
    question,
    role_run_of,
    ruled,
    worker_of,
)
from tests.support.judging.endpoint_replies import Reply, verdict
from tests.support.judging.endpoint_requests import Asked
from tests.support.judging.published_world import EVALUATORS, spoken
from tests.support.judging.published_world import PROMPTS as PUBLISHED_PROMPTS
from tests.support.judging.scripted_endpoint import ScriptedEndpoint, scripted_endpoint
from tests.support.judging.webarena import package_python

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
PROMPTS = Path(__file__).parents[2] / "judges" / "rubric" / "prompts" / "rubric_v1"
PUBLISHED_FOLDER = Path(__file__).parents[2] / "judges" / "published" / "prompts"


def asking(folder: Path, endpoint: ScriptedEndpoint, *overrides: str, text: str = "") -> Config:
    own = [f"judge_config.{override}" for override in overrides]
    return of_file(folder, text, "openai_config.model=m", f"openai_config.base_url={endpoint.base_url}", *own)


async def judged(config: Config, folder: Path) -> tuple[Judgement, MemoryBus]:
    """By the worker."""
    rubric = config.judge_config.rubric
    bus = MemoryBus(SUBJECTS, config.bus_config, (rubric,))
    async with judging(bus, config, folder):
        await answered(bus, question("t1"))
        return (await judgements(bus, 1))["t1"], bus


class TestRubricJudge:
    async def test_num_votes(self, tmp_path: Path) -> None:
        said = dict[str, int]()

        def script(asked: Asked) -> Reply:
            """The second of three votes on each question of the evaluation is against it."""
            if kind_of(asked) != "evaluation":
                return hoped_for(asked)
            number = said[asked.text] = said.get(asked.text, 0) + 1
            return verdict(reasoning="it is so", verdict="FAILURE" if number == 2 else "SUCCESS")

        async with scripted_endpoint(script) as endpoint:
            ruling, recorded = await ruled(asking(tmp_path, endpoint, "num_votes=3"), tmp_path)
        votes = {stage.stage: stage.votes for stage in ruling.stages if stage.votes}
        assert ruling.verdict is Verdict.SUCCESS
        assert votes == dict.fromkeys(("criterion_b", "criterion_a_1", "reference"), (True, False, True))
        assert set(said.values()) == {3}
        assert len([call for call in recorded if call.stage.startswith(("criterion", "reference"))]) == 9

    async def test_max_evidence_screenshots(self, tmp_path: Path) -> None:
        async with scripted_endpoint(hoped_for) as endpoint:
            ruling, _ = await ruled(asking(tmp_path, endpoint, "max_evidence_screenshots=2"), tmp_path, num_steps=5)
        assert ruling.verdict is Verdict.SUCCESS
        assert sorted(request.num_screenshots for request in endpoint.requests) == [1, 1, 1, 1, 2, 2, 2, 5]

    async def test_max_blocking_screenshots(self, tmp_path: Path) -> None:
        async with scripted_endpoint(hoped_for) as endpoint:
            await ruled(asking(tmp_path, endpoint, "max_blocking_screenshots=3"), tmp_path, num_steps=5)
        assert endpoint.requests[0].num_screenshots == 3

    async def test_prompts_and_label(self, tmp_path: Path) -> None:
        folder = tmp_path / "mine"
        shutil.copytree(PROMPTS, folder)
        (folder / "system.txt").write_text("Judge as a pirate would.\n")
        systems = set[str]()

        def script(asked: Asked) -> Reply:
            systems.add(asked.messages[0].text)
            return hoped_for(asked)

        async with scripted_endpoint(script) as endpoint:
            config = asking(tmp_path, endpoint, f"prompts={folder}", "label=pirate")
            assert config.bus_config.rubrics == ("rubric_v1-pirate",)
            judgement, bus = await judged(config, tmp_path)
        assert systems == {"Judge as a pirate would."}
        assert judgement.rubric == "rubric_v1-pirate"
        assert {call.rubric for call in await calls(bus)} == {"rubric_v1-pirate"}

    async def test_prompts_that_lack_a_file_are_named(self, tmp_path: Path) -> None:
        folder = tmp_path / "mine"
        shutil.copytree(PROMPTS, folder)
        (folder / "blocking.txt").unlink()
        async with scripted_endpoint(hoped_for) as endpoint:
            with pytest.raises(ConfigurationError, match=r"blocking.txt is missing"):
                await ruled(asking(tmp_path, endpoint, f"prompts={folder}", "label=pirate"), tmp_path)
        assert endpoint.requests == []


class PausingStatus(Status):
    """Tells when the worker pauses."""

    def __init__(self) -> None:
        self.paused = anyio.Event()
        super().__init__(Role.JUDGE, WorkerId("judge-1"))

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "note" and self.state == "paused":
            self.paused.set()


class TestBudget:
    @pytest.mark.parametrize(
        ("override", "num_calls", "note"),
        [
            ("judge_config.max_calls=2", 2, "2 calls were made: raise judge_config.max_calls (2) and start the judges again"),
            ("judge_config.max_cost=1e-9", 1, "raise judge_config.max_cost (1e-09) and start the judges again"),
        ],
    )
    async def test_a_budget_pauses_and_a_higher_one_goes_on(
        self, tmp_path: Path, override: str, num_calls: int, note: str
    ) -> None:
        async with scripted_endpoint(hoped_for) as endpoint:
            free = asking(tmp_path, endpoint)
            prices = "openai_config.prices={m: {input: 1, output: 1}}"
            address = f"openai_config.base_url={endpoint.base_url}"
            limited = of_file(tmp_path, "", "openai_config.model=m", address, prices, override)
            bus = MemoryBus(SUBJECTS, limited.bus_config, ("rubric_v1",))
            await answered(bus, question("t1"))
            status = PausingStatus()
            post = role_run_of(bus, limited, tmp_path)
            post = replace(post, context=replace(post.context, status=status))
            async with open_judge(post) as judge, background(worker_of(post, judge).run):
                with anyio.fail_after(HANGS_S):
                    await status.paused.wait()
            assert note in status.note
            assert len(endpoint.requests) == num_calls
            async with judging(bus, free, tmp_path):
                judgement = (await judgements(bus, 1))["t1"]
        assert judgement.verdict is Verdict.SUCCESS
        # Nothing is asked again that was answered before the pause.
        assert len(endpoint.requests) == len({request.digest for request in endpoint.requests}) == 5

    async def test_a_cost_that_cannot_be_counted_cannot_be_limited(self, tmp_path: Path) -> None:
        async with scripted_endpoint(hoped_for) as endpoint:
            with pytest.raises(ConfigurationError, match=r"there is no price for m: add it to openai_config.prices"):
                await ruled(asking(tmp_path, endpoint, "max_cost=1"), tmp_path)


class TestWorker:
    @pytest.mark.parametrize("hours", [12, 0.5, 0])
    async def test_blocklist_hours(self, tmp_path: Path, hours: float) -> None:
        async with scripted_endpoint(lambda _: verdict(reasoning="a captcha", verdict="BLOCKED")) as endpoint:
            judgement, bus = await judged(asking(tmp_path, endpoint, f"blocklist_hours={hours:g}"), tmp_path)
        assert (judgement.verdict, judgement.reward, judgement.blocked) == (Verdict.EXCLUDED, None, True)
        blocked = (await read_blocklist(bus, SUBJECTS)).blocked(time.time())
        expected = {"shop.example": pytest.approx(time.time() + hours * 3600, abs=60)} if hours else {}
        assert {site: entry.until for site, entry in blocked.items()} == expected

    async def test_shaping(self, tmp_path: Path) -> None:
        async with scripted_endpoint(hoped_for) as endpoint:
            judgement, _ = await judged(asking(tmp_path, endpoint, "shaping.length=0.5", "shaping.format=1"), tmp_path)
        # Two of five steps were used, all of them could be parsed.
        assert {part.name: part.value for part in judgement.parts} == pytest.approx(
            {"outcome": 1.0, "format": 0.0, "length": -0.2}
        )
        assert judgement.verdict is Verdict.SUCCESS
        assert judgement.reward == pytest.approx(0.8)

    async def test_max_attempts(self, tmp_path: Path) -> None:
        module = tmp_path / "failing.py"
        module.write_text(
            "from judges.named import judge\nasked = []\n\n@judge('failing_v1')\ndef failing(episode):\n"
            "    asked.append(episode)\n    raise ValueError(f'attempt {len(asked)}')\n"
        )
        config = of_file(tmp_path, "", f"judge_config.judge='{module}:failing_v1'")
        config = replace(config, judge_config=replace(config.judge_config, max_attempts=2))
        judgement, _ = await judged(config, tmp_path)
        assert judgement.verdict is Verdict.ERROR
        assert "asked 2 times" in judgement.error
        assert "attempt 2" in judgement.error


class TestPublishedEvaluators:
    @pytest.mark.parametrize("name", EVALUATORS)
    async def test_each_judges_through_the_real_client_and_says_how_it_asked(self, tmp_path: Path, name: str) -> None:
        async with scripted_endpoint(spoken) as endpoint:
            judgement, bus = await judged(asking(tmp_path, endpoint, f"judge={name}"), tmp_path)
        assert (judgement.rubric, judgement.verdict, judgement.reward) == (name, Verdict.SUCCESS, 1.0)
        (protocol,) = judgement.protocols
        assert (protocol.judge, protocol.prompts, protocol.digest) == (name, name, PUBLISHED_PROMPTS[name].digest)
        recorded = {(call.stage, call.model, call.temperature, call.screenshots) for call in await calls(bus)}
        assert {(each.stage, each.model, each.temperature, each.screenshots) for each in protocol.questions} == recorded
        assert {each.temperature for each in protocol.questions} == {0.0}
        assert len(protocol.questions) == len(endpoint.requests)

    async def test_prompts_of_ones_own(self, tmp_path: Path) -> None:
        folder = tmp_path / "mine"
        shutil.copytree(PUBLISHED_FOLDER / "webvoyager_v1", folder)
        (folder / "question.txt").write_text("Arr, of $count pictures: be it done?")
        questions: list[str] = []

        def script(asked: Asked) -> Reply:
            questions.append(asked.text)
            return spoken(asked)

        async with scripted_endpoint(script) as endpoint:
            config = asking(tmp_path, endpoint, "judge=webvoyager_v1", "label=pirate", f"prompts={folder}")
            judgement, _ = await judged(config, tmp_path)
        assert (judgement.rubric, judgement.protocols[0].prompts) == ("webvoyager_v1-pirate", "mine")
        assert "Arr, of 2 pictures" in questions[0]


COMPOSITES = """
judge_config:
  judge: careful_v1
  composites:
    careful_v1: {combine: all, parts: {answer_numeric_v1: 1, either_v1: 1}}
    either_v1: {combine: any, parts: {rubric_v1: 1, twice_v1: 1}}
    twice_v1: {combine: weighted, parts: {rubric_v1: 2, answer_exact_v1: 1}, threshold: 0.6}
"""


class TestComposition:
    async def test_composites_share_their_judges_and_stop_where_it_is_decided(self, tmp_path: Path) -> None:
        async with scripted_endpoint(hoped_for) as endpoint:
            config = asking(tmp_path, endpoint, "judge=careful_v1", text=COMPOSITES)
            judgement, _ = await judged(config, tmp_path)
            assert (judgement.rubric, judgement.verdict, judgement.reward) == ("careful_v1", Verdict.SUCCESS, 1.0)
            assert len(endpoint.requests) == 5
            async with open_judge(role_run_of(MemoryBus(SUBJECTS), config, tmp_path)) as judge:
                assert isinstance(judge, CompositeJudge)
                either = judge._judges[1]
                assert isinstance(either, CompositeJudge)
                twice = either._judges[1]
                assert isinstance(twice, CompositeJudge)
                assert either._judges[0] is twice._judges[0]

    async def test_a_rubric_that_fails_is_asked_once_for_both_parts(self, tmp_path: Path) -> None:
        def script(asked: Asked) -> Reply:
            good = kind_of(asked) != "evaluation"
            return hoped_for(asked) if good else verdict(reasoning="no", verdict="FAILURE")

        async with scripted_endpoint(script) as endpoint:
            judgement, _ = await judged(asking(tmp_path, endpoint, "judge=careful_v1", text=COMPOSITES), tmp_path)
        assert (judgement.verdict, judgement.reward) == (Verdict.FAILURE, 0.0)
        assert len(endpoint.requests) == 3  # blocking, a key point, criterion B; the second part reads what was recorded

    async def test_a_judge_of_ones_own_and_its_place_in_a_composite(self, tmp_path: Path) -> None:
        module = tmp_path / "mine.py"
        module.write_text(
            "from judges.named import judge\n\n@judge('euro_v1')\ndef euro(episode):\n"
            "    return 'euro' in episode.trajectory.answer\n"
        )
        text = f"judge_config: {{composites: {{both_v1: {{parts: {{'{module}:euro_v1': 1, answer_numeric_v1: 1}}}}}}}}"
        judgement, _ = await judged(of_file(tmp_path, text, "judge_config.judge=both_v1"), tmp_path)
        assert (judgement.rubric, judgement.verdict) == ("both_v1", Verdict.SUCCESS)
        assert [stage.stage.partition(".")[0] for stage in judgement.stages] == ["euro_v1", "answer_numeric_v1"]

    @pytest.mark.parametrize("name", JUDGES.builtin)
    async def test_every_judge_of_millrace_has_the_name_it_is_called_by(self, tmp_path: Path, name: str) -> None:
        async with scripted_endpoint(hoped_for) as endpoint:
            package = [f"webarena_python={package_python()}"] if name == "webarena_verified_v1" else []
            config = asking(tmp_path, endpoint, f"judge={name}", *package)
            async with open_judge(role_run_of(MemoryBus(SUBJECTS), config, tmp_path)) as judge:
                assert judge.name == name
        assert endpoint.requests == []

    @pytest.mark.parametrize(
        ("overrides", "sentence"),
        [
            (["judge=rubrik_v1"], "judge_config.judge is 'rubrik_v1'; did you mean rubric_v1"),
            (
                ["judge=rubrik_v1"],
                "agenttrek_v1, answer_exact_v1, answer_fuzzy_v1, answer_numeric_v1, deepshop_v1, environment_v1, "
                "milestones_v1, openwebrl_v1, rubric_v1, universal_verifier_v1, webarena_verified_v1, webjudge_v1, "
                "webvoyager_v1, or",
            ),
            (
                ["judge=a_v1", "composites={a_v1: {parts: {b_v1: 1}}}"],
                "judge_config.composites.a_v1.parts is 'b_v1'; did you mean rubric_v1. Write one of",
            ),
            (["judge=a_v1", "composites={a_v1: {parts: {a_v1: 1}}}"], "a_v1 is made of itself"),
            (["composites={environment_v1: {parts: {rubric_v1: 1}}}"], "environment_v1 is a judge of Millrace"),
            (["judge=no_such_module:mine_v1"], "no_such_module cannot be loaded: ModuleNotFoundError"),
            (["judge=json:mine.v1"], "judge_config.judge 'mine.v1' cannot name a stream"),
        ],
    )
    async def test_a_judge_that_cannot_be_is_answered_with_a_sentence(
        self, tmp_path: Path, overrides: list[str], sentence: str
    ) -> None:
        async def open_it() -> None:
            config = of_file(tmp_path, "", *(f"judge_config.{override}" for override in overrides))
            async with open_judge(role_run_of(MemoryBus(SUBJECTS), config, tmp_path)):
                pass

        with pytest.raises(ConfigurationError, match=sentence):
            await open_it()

    async def test_a_rubric_without_a_queue_is_refused(self, tmp_path: Path) -> None:
        post = role_run_of(MemoryBus(SUBJECTS), of_file(tmp_path, ""), tmp_path)
        config = replace(post.config, bus_config=replace(post.config.bus_config, rubrics=("environment_v1",)))
        with pytest.raises(ConfigurationError, match="no queue for rubric_v1, only for environment_v1: millrace rejudge"):
            async with open_judge(replace(post, config=config)):
                pass
