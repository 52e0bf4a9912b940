"""Metrics of a batch, by value."""

import msgspec
import pytest

from schemas.algorithm_config import AlgorithmConfig
from schemas.messages import Judgement, Outcome, Timings, Verdict
from tests import builders
from trainer.batch_metrics import batch_metrics, round_metrics, token_metrics
from trainer.tracking.loggable import loggable


def judged(
    reward: float | None, *, difficulty: int = 1, steps: int = 2, unparsed: int = 0, outcome: Outcome = Outcome.DONE
) -> Judgement:
    played = msgspec.structs.replace(
        builders.trajectory(msgspec.structs.replace(builders.task(), difficulty=difficulty), outcome=outcome, num_steps=steps),
        num_unparsed=unparsed,
        timings=Timings(reset_s=1.0, observe_s=0.5 * steps, policy_s=2.0 * steps, act_s=0.25 * steps, total_s=10.0 * steps),
    )
    return msgspec.structs.replace(builders.judgement(played, reward), judged_s=3.0)


BATCH = [
    judged(1.0),
    judged(0.0, steps=4, unparsed=3, outcome=Outcome.STEP_LIMIT),
    judged(1.0, difficulty=3),
    judged(None, steps=0, outcome=Outcome.BLOCKED),
]


def test_a_batch_by_value() -> None:
    found = batch_metrics(BATCH)
    assert found["success_difficulty_1"] == 0.5
    assert found["success_difficulty_3"] == 1.0
    assert found["episode_steps"] == pytest.approx(8 / 3)
    assert found["episode_s"] == pytest.approx(80 / 3)
    assert found["reset_s"] == 1.0
    assert (found["step_observe_s"], found["step_policy_s"], found["step_act_s"]) == (0.5, 2.0, 0.25)
    assert found["unparsed"] == 3 / 8
    assert {name: value for name, value in found.items() if name.startswith("ended_") and value} == {
        "ended_done": 0.5,
        "ended_step_limit": 0.25,
        "ended_blocked": 0.25,
    }
    assert (found["judge_s"], found["judge_errors"], found["attempts"], found["blocked"]) == (3.0, 0.0, 1.0, 0.0)


def test_what_judges_could_not_do_is_a_figure() -> None:
    failed = msgspec.structs.replace(judged(None), verdict=Verdict.ERROR)
    assert batch_metrics([*BATCH, failed])["judge_errors"] == 0.2
    assert batch_metrics([]) == {}


def test_a_round_by_value() -> None:
    found = round_metrics(BATCH)
    assert found["success"] == found["reward"] == pytest.approx(2 / 3)
    assert (found["episodes"], found["scored"]) == (4.0, 3.0)
    assert "success" not in round_metrics(BATCH[3:])


def test_tokens_are_those_of_fetched_episodes() -> None:
    assert token_metrics([10, 0, 20]) == {"episode_tokens": 15.0}
    assert token_metrics([0]) == {}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("none", ()),
        ("wandb", ("wandb",)),
        ("wandb, tensorboard", ("wandb", "tensorboard")),
        (("tensorboard", "wandb", "tensorboard"), ("tensorboard", "wandb")),
    ],
)
def test_where_figures_go(given: str | tuple[str, ...], meant: tuple[str, ...]) -> None:
    assert AlgorithmConfig(report_to=given).reporters == meant


def test_a_configuration_is_shown_without_secrets() -> None:
    tree = {
        "a": {"keys": "/etc/keys", "max_new_tokens": 3, "wandb_key_env_var": "WANDB_API_KEY", "password": "p"},
        "url": "nats://user:word@host:4222",
        "hosts": ["http://t@h/x"],
        "cdp_url": "wss://u:p?w@h/p?token=s#t",
        "cdp_urls": ["wss://h?apiKey=s", "wss://h#s"],
        "asks": "why? see https://h/q?k=s for #1",
    }
    assert loggable(tree) == {
        "a": {"max_new_tokens": 3, "wandb_key_env_var": "WANDB_API_KEY"},
        "url": "nats://host:4222",
        "hosts": ["http://h/x"],
        "cdp_url": "wss://h/p",
        "cdp_urls": ["wss://h", "wss://h"],
        "asks": "why? see https://h/q for #1",
    }
