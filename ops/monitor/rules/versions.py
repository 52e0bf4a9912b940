"""Alerts about versions: policies that cannot load one, a feeder that waits for one to be made or served."""

from collections.abc import Iterator

from ops.monitor.alerts.alert import Condition, Key
from ops.monitor.alerts.look import Look, critical, note, warning
from ops.monitor.cells import LIVE
from ops.monitor.rules import alert
from schemas.messages import Role, ServingState
from schemas.text import visible


@alert("versions")
def conditions(look: Look) -> Iterator[Condition]:
    yield from _unable_policies(look)
    yield from _waiting_feeder(look)


def _unable_policies(look: Look) -> Iterator[Condition]:
    live = look.state.policies.live(look.now)
    others_serve = any(said.state is ServingState.SERVING for said in live)
    for said in live:
        if said.state is not ServingState.UNABLE:
            continue
        name = visible(said.worker)
        sentence = f"{name} cannot load version {said.wanted} and serves {said.version}: {visible(said.reason)}"
        if others_serve:
            remedy = "the run goes on without it; see what its reason names: it tries again by itself"
            yield warning(Key("policy_behind", name), sentence, remedy)
        else:
            remedy = (
                "no policy serves the newest version, so the run waits; see what its reason names: it tries again by itself"
            )
            yield critical(Key("policy_behind", name), sentence, remedy)


def _waiting_feeder(look: Look) -> Iterator[Condition]:
    live = sum(count for phase, count in look.state.cells.counts().items() if phase in LIVE)
    bound = look.config.feeder_config.staleness_bound
    if not look.trains or bound is None or live or not look.state.workers.of(Role.FEEDER, look.now):
        return
    counted = look.state.policies.counted(look.now)
    if counted is not None and counted < look.state.version:
        sentence = f"nothing is played: version {look.state.version} is announced, and policies still serve {counted}"
        remedy = "see which policy loads it, or cannot: the table of workers, alerts of policies, their logs"
    else:
        sentence = f"nothing is played: the feeder waits for the next version (staleness bound {bound})"
        remedy = "training is the bottleneck: give it more devices, or raise feeder_config.max_staleness"
    yield note(Key("staleness_bound"), sentence, remedy, after_s=look.bounds.staleness_wait_s)
