"""What is deliberately different here.

Each difference has a rule that turns what is computed here into what the peer computes, so that all else is compared exactly.
A rule reads the peer's settings and inputs, never its results.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from tests.numeric import advantage_rules, loss_rules
from tests.numeric.cases import Case, Outcome
from tests.numeric.peer_settings import changes

_WHITENED = ("gae", "bi_level_gae", "no_concat_gae", "reinforce_plus_plus", "reinforce_plus_plus_baseline")
_JANUARY = "volcengine/verl"
"""verl's repository at the earlier commit."""


@dataclass(frozen=True)
class Difference:
    there: str
    """What the peer does, and what is done here instead."""
    compared: str
    """What is done to the outcome here before it is compared."""
    applies: Callable[[Case], bool]
    given: Callable[[Case], Case] = lambda case: case
    """The rule for inputs."""
    turned: Callable[[Case, Outcome], Outcome] = lambda _, ours: ours
    """The rule for outcomes."""


def _normalises(case: Case) -> bool:
    return bool(case.settings.get("normalize_advantages") or case.settings.get("adv_norm"))


DIFFERENCES = (
    Difference(
        "whitens by the unbiased variance; here by the population's",
        "· sqrt((n − 1) / n)",
        lambda case: case.piece in _WHITENED and case.peer in ("verl", "VAGEN"),
        turned=advantage_rules.unbiased,
    ),
    Difference(
        "divides by unbiased deviation + 1e-5; here by sqrt(variance + 1e-8)",
        "· the second / the first",
        lambda case: case.piece == "gae" and _normalises(case),
        turned=advantage_rules.over_deviation,
    ),
    Difference(
        "can leave GAE unwhitened; here it is always whitened",
        "returns − values in place of advantages",
        lambda case: case.piece == "gae" and case.peer in ("AReaL", "RLinf") and not _normalises(case),
        turned=advantage_rules.unwhitened,
    ),
    Difference(
        "adds 1e-5 to a group's deviation; here 1e-6",
        "· (std + 1e-6) / (std + 1e-5)",
        lambda case: case.piece == "grpo" and case.peer == "AReaL",
        turned=advantage_rules.larger_epsilon,
    ),
    Difference(
        "gives a group of one 0; here it keeps its score, and is not trained on",
        "· 0 in groups of one",
        lambda case: case.piece == "grpo" and case.peer == "prime-rl",
        turned=advantage_rules.nothing_alone,
    ),
    Difference(
        "counts an episode once for each of its steps in its group; here once",
        "the group's part exchanged",
        lambda case: case.piece == "gigpo" and case.peer == "verl-agent",
        turned=advantage_rules.episodes_by_steps,
    ),
    Difference(
        "forgets later rewards at every observation, until it was changed; here observations change nothing",
        "every step an episode of its own",
        lambda case: (
            case.piece == "reinforce_plus_plus" and case.repository == _JANUARY and case.settings["observation_tokens"] is True
        ),
        given=advantage_rules.steps_alone,
    ),
    Difference(
        "spreads the whole score over all tokens; here a token has what is earned from it on",
        "all rewards at the last token",
        lambda case: case.piece == "reinforce_plus_plus_baseline",
        given=advantage_rules.earned_at_the_end,
    ),
    Difference(
        "does not divide by the number of sequences, until it was changed",
        "· sequences",
        lambda case: case.piece == "aggregation:seq-mean-token-sum-norm" and case.repository == _JANUARY,
        turned=loss_rules.times(loss_rules.num_sequences),
    ),
    Difference(
        "has `token-sum`; here nothing depends on how many tokens there are",
        "`token-mean` · trained tokens",
        lambda case: case.settings.get("loss_agg_mode") == "token-sum",
        turned=loss_rules.times(loss_rules.num_tokens),
    ),
    Difference(
        "counts sequences without a trained token; here they do not count",
        "· the share of the others",
        lambda case: (
            case.piece.startswith("aggregation:seq-")
            and case.peer in ("RLinf", "TRL")
            and loss_rules.share_of_sequences(case) < 1
        ),
        turned=loss_rules.times(loss_rules.share_of_sequences),
    ),
    Difference(
        "takes dropped and rejected tokens out of the denominator; here they stay in it",
        "· trained tokens / kept ones",
        lambda case: case.piece == "reinforce" or bool(case.settings.get("behave_weight_threshold")),
        turned=loss_rules.times(loss_rules.tokens_over_kept),
    ),
    Difference(
        "has no bound of log-ratios; here ± 20, and no gradient beyond",
        "+ the rest of tokens with A < 0",
        lambda case: (
            case.peer != "verl"
            and case.piece in ("clipped", "dppo_tv")
            and loss_rules.is_far(case)
            and not changes(case).get("clip_ratio_c")
        ),
        turned=loss_rules.held_at(inf),
    ),
    Difference(
        "holds a sequence's log-ratio to 10 from above; here to ± 20",
        "− what tokens with A < 0 have beyond",
        lambda case: case.peer == "verl" and case.piece == "gspo" and loss_rules.is_far(case),
        turned=loss_rules.held_at(10.0),
    ),
    Difference(
        "−A sg(min(ρ, c)) log π; here −A ρ + `tv_kl_coef` (log ρ)², without a gradient beyond ± 20",
        "`tv_kl_coef` 0, gradients · min(ρ, c) / ρ, the loss by them",
        lambda case: case.peer == "verl" and case.piece == "dppo_tv",
        turned=loss_rules.by_score_function,
    ),
    Difference(
        "averages the advantages of a sequence; here each token keeps its own",
        "advantages averaged before",
        lambda case: case.peer == "AReaL" and case.piece == "gspo",
        given=loss_rules.mean_advantages,
    ),
    Difference(
        "spreads a sequence's gradient evenly; here each token has its own",
        "gradients averaged by sequence",
        lambda case: case.peer == "TRL" and case.piece == "gspo",
        turned=loss_rules.mean_gradients,
    ),
    Difference(
        "holds every divergence to ± 10; here `low_var_kl` alone",
        "held to ± 10",
        lambda case: case.peer == "AReaL" and case.piece in ("kl:kl", "kl:mse"),
        turned=loss_rules.held_to_ten,
    ),
    Difference(
        "has k3 of π_b / π_p; here of π_p / π_b",
        "both exchanged",
        lambda case: case.piece == "rejection" and case.settings.get("metric") == "kl_k3",
        given=loss_rules.exchanged,
        turned=loss_rules.inverse_weights,
    ),
)
