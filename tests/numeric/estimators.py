"""Recomputes peers' advantages with the estimators here."""

from collections.abc import Mapping

import numpy as np

from schemas.ids import GroupId
from schemas.objective_config import ObjectiveConfig
from tests.numeric.cases import Case, Outcome, Row, flat
from tests.numeric.peer_settings import changes
from trainer.advantages import EpisodeRewards, Steps
from trainer.advantages.rewards import overlong_penalty
from trainer.estimators import configured_estimator

ESTIMATORS: Mapping[str, str] = {
    "grpo": "grpo",
    "rloo": "rloo",
    "remax": "remax",
    "reinforce_plus_plus": "reinforce_plus_plus",
    "reinforce_plus_plus_baseline": "reinforce_plus_plus_baseline",
    "gae": "gae",
    "bi_level_gae": "bi_level_gae",
    "no_concat_gae": "turn_gae",
    "gigpo": "gigpo",
}
"""By the piece of a case; the peers' settings are in `peer_settings`."""


def estimated(case: Case) -> Outcome:
    """Of the episodes that are trained on, `values` given back."""
    config = ObjectiveConfig(adv_estimator=ESTIMATORS[case.piece], loss_type="clipped", group_size=2, **changes(case))
    episodes = [_episode(row) for row in case.rows]
    found = configured_estimator(config)(episodes)
    trained = [pair for pair in zip(episodes, found, strict=True) if not pair[0].greedy]
    return {
        "advantages": flat([list(map(list, one.advantages)) for _, one in trained]),
        "returns": _learnt(case, flat([list(map(list, one.returns)) for _, one in trained])),
        "values": flat([list(map(list, episode.values)) for episode, _ in trained]),
    }


def _learnt(case: Case, returns: np.ndarray) -> np.ndarray:
    """Where the critic does not learn there is NaN here, and a number of the peer's there."""
    learnt: np.ndarray = np.nan_to_num(returns, nan=case.settings.get("ignore_value", np.nan))
    return learnt


def overlong(case: Case) -> Outcome:
    settings = case.settings
    limit, buffer, factor = (
        next(settings[name] for name in names if name in settings)
        for names in (
            ("max_resp_len", "max_response_length"),
            ("len", "overlong_tokens"),
            ("penalty_factor", "overlong_penalty_factor"),
        )
    )
    found = [
        overlong_penalty(int(length), max_new_tokens=limit, buffer_len=buffer, factor=factor)
        for length in case.column("lengths")
    ]
    return {"penalties": np.array(found)}


def _episode(row: Row) -> EpisodeRewards:
    rewards = _steps(row["rewards"])
    return EpisodeRewards(
        group=GroupId(row["group"]),
        reward=float(sum(step.sum() for step in rewards)),
        rewards=rewards,
        num_steps=len(rewards),
        values=_steps(row.get("values", ())),
        anchors=tuple(row.get("anchors", ())),
        greedy=row.get("greedy", False),
    )


def _steps(rows: list[list[float]]) -> Steps:
    return tuple(np.array(row, dtype=np.float64) for row in rows)
