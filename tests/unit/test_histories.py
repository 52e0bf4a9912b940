"""What a policy worker remembers: what prompts show, within a number of bytes."""

import msgspec
import pytest

from agents.context import Round
from agents.histories import Histories, History
from bus import chain
from bus.chain import EpisodeChain
from bus.memory import MemoryBus
from bus.subjects import Subjects
from schemas.context_config import ContextConfig
from schemas.errors import PolicyError
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Observation, StepRequest, Task, VersionSpan
from tests import builders

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(builders.RUN)
_SCREENSHOT = 100_000
_TOKENS = 20_000
_NUM_SCREENSHOTS = 2
_CONTEXT = ContextConfig(num_rounds=_NUM_SCREENSHOTS)


def seen_at(of: Task, step: int) -> Observation:
    return builders.observation(of, step, data=bytes(_SCREENSHOT))


def answered(of: Task, step: int) -> StepRequest:
    return msgspec.structs.replace(
        builders.step_request(of, step),
        prompt_tokens=tuple(range(_TOKENS)),
        completion_tokens=tuple(range(_TOKENS)),
        logprobs=(-0.5,) * _TOKENS,
        versions=(VersionSpan(start=0, end=_TOKENS, version=PolicyVersion(0)),),
        response="because",
    )


async def remembered(histories: Histories, of: Task, num_steps: int) -> History:
    """After so many answers."""
    history = History(task=of, attempt=1, rounds=())
    for step in range(num_steps):
        histories.add(history, Round(seen_at(of, step), answered(of, step)))
        history = await histories.before(seen_at(of, step + 1))
    return history


def assert_light(history: History) -> None:
    shown = [index >= len(history.rounds) - _NUM_SCREENSHOTS for index in range(len(history.rounds))]
    steps = [round_.step for round_ in history.rounds]
    assert not any(step.prompt_tokens or step.completion_tokens or step.logprobs for step in steps)
    assert [bool(round_.observation.screenshot.data) for round_ in history.rounds] == shown
    assert [bool(step.response) for step in steps] == shown


async def test_it_holds_what_prompts_show_and_nothing_else() -> None:
    histories = Histories(MemoryBus(SUBJECTS), SUBJECTS, context=_CONTEXT, max_bytes=2**30)
    assert_light(await remembered(histories, builders.task(), 10))
    assert _NUM_SCREENSHOTS * _SCREENSHOT < histories.num_bytes < (_NUM_SCREENSHOTS + 1) * _SCREENSHOT


async def test_where_turns_stay_their_answers_do_and_their_screenshots_do_not() -> None:
    context = ContextConfig(num_rounds=_NUM_SCREENSHOTS, history="thinking")
    histories = Histories(MemoryBus(SUBJECTS), SUBJECTS, context=context, max_bytes=2**30)
    rounds = (await remembered(histories, builders.task(), 10)).rounds
    assert [bool(round_.observation.screenshot.data) for round_ in rounds] == [False] * 8 + [True] * 2
    assert all(round_.step.response == "because" for round_ in rounds)


async def test_what_is_read_again_from_the_chain_is_as_light() -> None:
    bus, of = MemoryBus(SUBJECTS), builders.task()
    await chain.admit(bus, SUBJECTS, of)
    owned = await EpisodeChain.take(bus, SUBJECTS, of, WorkerId("b1"))
    assert isinstance(owned, EpisodeChain)
    for step in range(5):
        seq = await owned.observe(seen_at(of, step))
        owned.answered(await chain.answer(bus, SUBJECTS, seq, answered(of, step)))
    histories = Histories(bus, SUBJECTS, context=_CONTEXT, max_bytes=2**30)
    assert_light(await histories.before(seen_at(of, 5)))


async def test_the_longest_unused_are_let_go_of() -> None:
    bus = MemoryBus(SUBJECTS)
    histories = Histories(bus, SUBJECTS, context=_CONTEXT, max_bytes=int(4.5 * _SCREENSHOT))
    tasks = [builders.task(name) for name in ("t1", "t2", "t3")]
    for of in tasks:
        await chain.admit(bus, SUBJECTS, of)
        await remembered(histories, of, _NUM_SCREENSHOTS)
        assert histories.num_bytes <= 4.5 * _SCREENSHOT
    for of in tasks[1:]:
        assert (await histories.before(seen_at(of, _NUM_SCREENSHOTS))).rounds
    with pytest.raises(PolicyError):
        await histories.before(seen_at(tasks[0], _NUM_SCREENSHOTS))


async def test_an_episode_that_alone_is_too_much_is_not_remembered() -> None:
    histories = Histories(MemoryBus(SUBJECTS), SUBJECTS, context=_CONTEXT, max_bytes=_SCREENSHOT // 2)
    of = builders.task()
    histories.add(History(task=of, attempt=1, rounds=()), Round(seen_at(of, 0), answered(of, 0)))
    assert histories.num_bytes == 0
