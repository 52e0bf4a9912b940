"""The four divergence estimators: against plain loops, as a loss and off the reward, with their gradients."""

from typing import get_args

import numpy as np
import pytest
import torch

from schemas.objective_config import KlType
from tests.support.training import loss_oracles
from trainer.advantages.divergence import divergence
from trainer.token_losses import kl

KINDS: tuple[KlType, ...] = get_args(KlType)
PLAIN: tuple[KlType, ...] = ("kl", "abs", "mse", "low_var_kl")


@pytest.mark.parametrize("kind", KINDS)
def test_both_forms_equal_plain_loops(kind: KlType) -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(-2, 1, 500), rng.normal(-2, 3, 500)
    expected = [loss_oracles.kl(a, b, kind) for a, b in zip(ours, theirs, strict=True)]
    np.testing.assert_allclose(divergence(ours - theirs, kind), expected, rtol=1e-6, atol=1e-6)
    found = kl.divergence(torch.from_numpy(ours - theirs), kind)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", sorted({*KINDS} - {*PLAIN}))
def test_a_plus_has_the_value_of_its_kind_and_the_gradient_of_the_square(kind: KlType) -> None:
    difference = torch.tensor([-30.0, -1.5, 0.2, 4.0], requires_grad=True)
    found = kl.divergence(difference, kind)
    found.sum().backward()  # type: ignore[no-untyped-call]
    plain: KlType = kind.removesuffix("+")  # type: ignore[assignment]
    assert found.tolist() == pytest.approx(kl.divergence(difference.detach(), plain).tolist(), rel=1e-5)
    assert difference.grad is not None
    assert difference.grad.tolist() == difference.tolist()


@pytest.mark.parametrize("kind", PLAIN)
def test_gradients(kind: KlType) -> None:
    """Of differences on both sides of 0, where all four are smooth."""
    difference = torch.tensor([-1.5, -0.3, 0.2, 0.9, 4.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda d: kl.divergence(d, kind), difference)


def test_by_hand() -> None:
    """d = ln 2: the policy makes the token twice as likely as the reference does."""
    d = torch.tensor([2.0]).log()
    assert [float(kl.divergence(d, kind)) for kind in PLAIN] == pytest.approx([0.6931, 0.6931, 0.2402, 0.1931], abs=1e-4)


def test_the_low_variance_estimator_stays_finite() -> None:
    far = torch.tensor([-200.0, 200.0], requires_grad=True)
    found = kl.divergence(far, "low_var_kl")
    found.sum().backward()  # type: ignore[no-untyped-call]
    assert found.tolist() == [10.0, 10.0]
    assert far.grad is not None
    assert far.grad.tolist() == [0.0, 0.0]
    assert divergence(np.array([-200.0, 200.0]), "low_var_kl").tolist() == [10.0, 10.0]
