"""Which of a cluster's servers a worker tries first."""

import pytest

from bus.jetstream.nearest import nearest_first

pytestmark = pytest.mark.anyio


async def test_a_server_of_this_machine_is_tried_first_and_the_others_in_any_order() -> None:
    far = [f"tls://198.51.100.{number}:4222" for number in range(1, 6)]  # addresses that nobody has
    orders = set()
    for _ in range(20):
        first, *others = await nearest_first([*far, "tls://127.0.0.1:4222"])
        assert first == "tls://127.0.0.1:4222"
        assert sorted(others) == far
        orders.add(tuple(others))
    assert len(orders) > 1, "all workers would go to one server"
