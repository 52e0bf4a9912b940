"""A warm start practises what is answered badly, and knows how well that is."""

import math
from collections import Counter
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ops.quickstart import examination
from ops.quickstart.cooling import Cooling
from ops.quickstart.examination import Demonstration, Examiner
from ops.quickstart.practice import Practice
from ops.quickstart.recipe import WarmStart
from schemas.config import Config
from tests.support.training.ragged import text_sample


def shown(page: str, num_steps: int = 1) -> Demonstration:
    return Demonstration(page, (text_sample(0, 2),) * num_steps, (None,) * num_steps)


def drawn(practice: Practice, *, num_steps: int = 400) -> Counter[int]:
    return Counter(index for chosen in islice(practice.order(4), num_steps) for index in chosen.tolist())


def test_until_the_first_look_demonstrations_of_as_many_steps_come_alike_and_longer_ones_more_often() -> None:
    counts = drawn(Practice([shown(page) for page in "abcdefgh"], seed=0))
    assert min(counts.values()) > 150
    assert max(counts.values()) < 250
    counts = drawn(Practice([*(shown(page) for page in "abcdefgh"), shown("i", 3)], seed=0))
    assert min(counts[index] for index in (8, 9, 10)) > 2 * max(counts[index] for index in range(8))


def test_what_is_answered_badly_comes_more_often_and_what_is_answered_well_is_not_forgotten() -> None:
    practice = Practice([shown(page) for page in "abcdefgh"], seed=0)
    practice.look({"a": 0.0, "b": 0.2, "c": 0.7, **dict.fromkeys("defgh", 1.0)})
    counts = drawn(practice)
    assert counts[0] > counts[1] > 2 * max(counts[index] for index in range(2, 8))
    assert min(counts.values()) > 0


def test_no_demonstration_comes_twice_in_a_step_and_one_seed_gives_one_order() -> None:
    steps = [list(islice(Practice([shown(page) for page in "abcde"], seed=3).order(4), 50)) for _ in range(2)]
    assert all(len(set(chosen.tolist())) == 4 for chosen in steps[0])
    assert np.array_equal(steps[0], steps[1])
    assert len(next(Practice([shown("a")], seed=0).order(4))) == 1, "fewer than a step takes"


def test_the_expected_success_is_the_probability_of_every_step_of_an_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pixel_scale", "suppressed_tokens", "PromptTokenizer"):
        monkeypatch.setattr(examination, name, lambda _: None)
    examiner = Examiner(Path(), [shown("a", 2), shown("b"), shown("b")], Config())
    answers = [[0.5, 0.5], [0.5, 1.0], [1.0, 1.0], [0.1, 1.0]]
    engine = SimpleNamespace(completion_logprobs=lambda _: [np.log(np.array(answer, np.float32)) for answer in answers])
    success = examiner.success(engine)  # type: ignore[arg-type]
    assert success.keys() == {"a", "b"}
    assert math.isclose(success["a"], 0.125, rel_tol=1e-5)
    assert math.isclose(success["b"], (1.0 + 0.1) / 2, rel_tol=1e-5)


def cooling(num_updates: int) -> Cooling:
    return Cooling(
        WarmStart(
            target_success=0.5,
            num_kept_out=1,
            updates_between=5,
            max_updates=100,
            learning_rate=1e-3,
            cooling_updates=num_updates,
        )
    )


def test_behind_its_target_a_warm_start_cools() -> None:
    """Steps 11 to 14 behind a look after 10; a page that falls again changes nothing."""
    course = cooling(4)
    course.look(5, 0.4)
    assert (course.rate_factor(5), course.ends_at, course.begun) == (1.0, 100, False)
    course.look(10, 0.5)
    course.look(12, 0.3)
    course.look(13, 0.6)
    assert course.ends_at == 14
    assert [course.rate_factor(step) for step in range(10, 14)] == pytest.approx([0.8, 0.6, 0.4, 0.2])


def test_without_cooling_it_ends_at_its_target() -> None:
    course = cooling(0)
    course.look(10, 0.7)
    assert (course.ends_at, course.begun) == (10, True)
