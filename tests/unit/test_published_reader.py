"""The model that reads for published evaluators: what each makes of an episode follows from what it shows."""

from collections.abc import Sequence

import msgspec
import pytest

from judges.rubric.asking import Inquiry
from schemas.messages import Fact, Screenshot, Task, Verdict
from tests.support.judging.endpoint_requests import Asked, Message
from tests.support.judging.published_reader import PublishedReader, demands
from tests.support.judging.published_world import EVALUATORS, published_judge
from tests.support.judging.rubric_world import Models, episode, rubric_task, seen
from tests.support.texts.page_text import digest_of

pytestmark = pytest.mark.anyio
START, LAMP, OTHER, WALL = b"start", b"lamp", b"other", b"wall"
TEXTS = {
    digest_of(START): "Welcome to the shop",
    digest_of(LAMP): "Blue lamp €20.00",
    digest_of(OTHER): "Green lamp €30.00",
    digest_of(WALL): "Verify that you are human",
}
OF = msgspec.structs.replace(
    rubric_task(num_facts=0), facts=(Fact("The product page shows “Blue lamp”.", group="the lamp"),), reference_answer="20.00"
)


def _reading(of: Task) -> Models:
    reader = PublishedReader(TEXTS, demands([of]))

    def model(inquiry: Inquiry) -> str:
        content = tuple(part.data if isinstance(part, Screenshot) else part for part in inquiry.question.content)
        body = {"response_format": {"json_schema": {"name": inquiry.question.schema_name}}}
        said = reader(Asked(0, "", {}, body, (Message("system", (inquiry.question.system,)), Message("user", content))))
        assert said.text is not None
        return said.text

    return Models(model)


@pytest.mark.parametrize(
    ("shots", "answer", "expected"),
    [
        ((START, LAMP), "It costs 20.00.", Verdict.SUCCESS),
        ((START, OTHER), "It costs 30.00.", Verdict.FAILURE),
        ((START, START), "It costs 20.00.", Verdict.FAILURE),
        ((START, WALL), "done", Verdict.FAILURE),
    ],
)
@pytest.mark.parametrize("name", EVALUATORS)
async def test_an_episode_is_judged_by_what_was_shown(
    name: str, shots: Sequence[bytes], answer: str, expected: Verdict
) -> None:
    ruling = await published_judge(name, _reading(OF)).judge(episode(OF, seen(OF, shots), answer=answer))
    assert ruling.verdict is expected


@pytest.mark.parametrize("name", EVALUATORS)
async def test_a_wrong_answer_is_seen_by_those_alone_that_are_told_it(name: str) -> None:
    ruling = await published_judge(name, _reading(OF)).judge(episode(OF, seen(OF, (LAMP, LAMP)), answer="It costs 99.00."))
    assert (ruling.verdict is Verdict.SUCCESS) == (name in ("agenttrek_v1", "webjudge_v1"))


async def test_an_obstacle_is_told_apart() -> None:
    ruling = await published_judge("universal_verifier_v1", _reading(OF)).judge(
        episode(OF, seen(OF, (START, WALL)), answer="done")
    )
    stages = {stage.stage: stage.passed for stage in ruling.stages}
    assert (stages["obstacles"], stages["process"], stages["outcome"]) == (False, True, False)
