"""A rule of one's own: sites take the agent for a machine.

monitor_config:
  alerts: [examples/own_alert.py:blocked]
"""

from collections.abc import Iterator

from ops.monitor.alerts.alert import Condition, Key
from ops.monitor.alerts.look import Look, warning
from ops.monitor.rules import alert
from schemas.messages import Verdict


@alert("blocked")
def blocked(look: Look) -> Iterator[Condition]:
    """More than a tenth of all judgements were excluded, for which a block is the usual cause."""
    counts = look.state.judging.counts
    share = counts[Verdict.EXCLUDED] / max(1, counts.total())
    if counts.total() >= look.bounds.least_window and share > 0.1:
        yield warning(Key("blocked"), f"{share:.0%} of {counts.total()} judgements are excluded", "see millrace blocklist")
