"""Leases for tests that are about renewing them."""

import pytest

from tests.deadlines import HANGS_S

_EVERY_S = 0.5


def renewed_often(patch: pytest.MonkeyPatch) -> float:
    """Returns seconds to live, in which no machine is too slow to renew a lease; it is renewed every half second."""
    patch.setattr("bus.jetstream.lease._RENEWALS", HANGS_S / _EVERY_S)
    return HANGS_S
