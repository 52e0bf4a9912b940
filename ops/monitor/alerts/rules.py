"""Every rule there is, in one list: what an operator should know of a run at one moment. Pure."""

from collections.abc import Collection

from ops.monitor.alerts import flow, quality, roles, server, versions
from ops.monitor.alerts.alert import Condition, Key
from ops.monitor.alerts.look import Look
from ops.monitor.passing import PassOver, passing_over
from ops.monitor.state import MonitorState
from schemas.config import Config

_RULES = (server.conditions, roles.conditions, flow.conditions, versions.conditions, quality.conditions)
_UNREACHABLE = Key("server_unreachable")


def conditions(
    state: MonitorState, config: Config, now: float, *, pass_over: PassOver, raised: Collection[Key] = ()
) -> list[Condition]:
    """All that hold. `raised`: the alerts there are, whose bounds are wider."""
    look, held = Look(state=state, config=config, now=now, raised=raised), list[Condition]()
    for rule in _RULES:
        with passing_over(pass_over, f"the alerts of {rule.__module__}"):
            held.extend(rule(look))
    # Without a server nothing is heard: what follows from that is not told as well.
    unreachable = [condition for condition in held if condition.key == _UNREACHABLE]
    return unreachable or held
