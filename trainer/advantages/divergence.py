"""A token's divergence from the reference, which rewards are reduced by; as a loss it is `trainer.token_losses.kl`."""

import numpy as np
import numpy.typing as npt

from schemas.objective_config import KlType


def divergence(difference: npt.NDArray[np.float64], kind: KlType) -> npt.NDArray[np.float64]:
    """Estimators of KL(pi, reference) by d = log pi - log reference of the sampled tokens (Schulman's k1, k2, k3).

    kl (k1): d. abs: |d|. mse (k2): d^2 / 2. low_var_kl (k3): exp(-d) + d - 1, d held to 20 either way and the result to 10.
    """
    match kind.removesuffix("+"):
        case "kl":
            return difference
        case "abs":
            return np.abs(difference)
        case "mse":
            return difference**2 / 2
        case "low_var_kl":
            held = np.clip(difference, -20.0, 20.0)
            return np.minimum(np.exp(-held) + held - 1.0, 10.0)
    raise AssertionError(kind)
