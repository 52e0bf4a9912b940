"""What a run's held-out pages have in common with those it was trained on."""

import msgspec
import pytest

from bus.memory import MemoryBus
from bus.ports import Bus
from ops.quickstart.overlap import Overlap, count_overlap
from schemas.messages import Judgement, Split
from tests.builders import judgement, task
from tests.contract.backends import SUBJECTS
from tests.support.bus.played import play


async def judged(bus: Bus, split: Split, seed: int, *, num_steps: int = 1) -> Judgement:
    """An episode on the page of that seed; all pages look alike."""
    of = msgspec.structs.replace(task(f"t{seed}", split=split), website=f"miniwob:click-test?seed={seed}")
    return judgement(await play(bus, of, num_steps=num_steps))


@pytest.mark.anyio
async def test_pages_are_compared_by_name_and_by_their_first_screenshot() -> None:
    bus = MemoryBus(SUBJECTS)
    trained = [await judged(bus, Split.TRAIN, seed) for seed in (1, 2)]
    held_out = [await judged(bus, Split.EVAL, seed) for seed in (2, 3, 4)]
    assert await count_overlap(bus, SUBJECTS, trained, held_out) == Overlap(num_shared=1, num_alike=3)
    assert await count_overlap(bus, SUBJECTS, [], held_out) == Overlap(num_shared=0, num_alike=0)


@pytest.mark.anyio
async def test_an_episode_that_saw_nothing_is_like_none() -> None:
    bus = MemoryBus(SUBJECTS)
    trained = [await judged(bus, Split.TRAIN, 1, num_steps=0)]
    held_out = [await judged(bus, Split.EVAL, 2, num_steps=0), await judged(bus, Split.EVAL, 3)]
    assert await count_overlap(bus, SUBJECTS, trained, held_out) == Overlap(num_shared=0, num_alike=0)
