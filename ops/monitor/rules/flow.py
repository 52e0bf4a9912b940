"""Alerts about the flow of a run: queues that grow, training that is late."""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from ops.monitor.alerts.alert import Condition, Key
from ops.monitor.alerts.look import Look, span, warning
from ops.monitor.rules import alert
from schemas.messages import Role

_LEAST_VERSIONS = 4
_LEAST_DELAY_S = 60.0


@alert("flow")
def conditions(look: Look) -> Iterator[Condition]:
    yield from _growing(look)
    yield from _late_version(look)


def _growing(look: Look) -> Iterator[Condition]:
    for queue in look.state.queues.values():
        if queue.role is Role.BROWSER:
            continue  # The feeder fills TASKS up to what it may admit: that it is long says nothing.
        grown = queue.growth(look.bounds.queue_growth_s)
        if grown is None:
            continue
        first, last = grown
        if last - first >= look.bounds.queue_growth_least and last >= 2 * first:
            yield warning(
                Key("queue_growing", queue.name),
                f"{queue.name} has grown from {first:,} to {last:,} in {span(look.bounds.queue_growth_s)}",
                f"add {queue.role.value} workers: millrace {queue.role.value}",
            )


def _late_version(look: Look) -> Iterator[Condition]:
    times = list(look.state.version_times)
    if not look.trains or len(times) < _LEAST_VERSIONS:
        return
    usual_s, waited_s = median(after - before for before, after in pairwise(times)), look.now - times[-1]
    if waited_s > max(_LEAST_DELAY_S, look.bounds.version_delay * usual_s):
        yield warning(
            Key("training_late"),
            f"no version for {span(waited_s)}; those before took {span(usual_s)} each",
            "see which role everything waits for: queues and phases say it, then its log",
        )
