"""A token's divergence from the reference as a term of the loss. Taken off the reward it is `advantages.divergence`."""

from typing import cast

import torch

from schemas.objective_config import KlType


def divergence(difference: torch.Tensor, kind: KlType) -> torch.Tensor:
    """Estimators of KL(pi, reference) by d = log pi - log reference of the sampled tokens (Schulman's k1, k2, k3).

    kl (k1): d. abs: |d|. mse (k2): d^2 / 2. low_var_kl (k3): exp(-d) + d - 1, d held to 20 either way and the result to 10;
    beyond that it has no gradient. The gradient of k1 is zero on average for tokens of the policy's own: as a loss it
    restrains nothing, k2 and k3 do. With a plus the value is the same and the gradient that of k2 (straight through).
    """
    if kind.endswith("+"):
        through = difference.square() / 2
        return divergence(difference, cast(KlType, kind[:-1])).detach() + through - through.detach()
    match kind:
        case "kl":
            return difference
        case "abs":
            return difference.abs()
        case "mse":
            return difference.square() / 2
        case "low_var_kl":
            held = difference.clamp(-20.0, 20.0)
            return ((-held).exp() + held - 1.0).clamp(max=10.0)
    raise AssertionError(kind)
