"""Figures as people read them: by their names' suffixes with units, never as powers of ten that are large. Pure."""

import math
from collections.abc import Callable, Mapping

from ops.monitor.alerts.look import span
from schemas.messages import Role

_LARGEST = 1e12
_SMALLEST = 1e-3
_FIRST: Mapping[Role, tuple[str, ...]] = {
    Role.FEEDER: ("running", "admitted", "accepted", "limit", "version", "success"),
    Role.BROWSER: ("active", "slots", "episodes", "failures", "steps_taken"),
    Role.POLICY: ("running", "slots", "tokens_per_s", "answered", "version", "unparsed_share"),
    Role.JUDGE: ("busy", "slots", "success", "failure", "error", "calls", "cost"),
    Role.TRAINER: ("collected", "batch", "version", "loss", "mismatch"),
    Role.ARCHIVER: ("episodes", "judgements"),
}
"""Those of a role that say most."""
_EVERY = ("gpu_busy_share", "gpu_memory_mib", "memory_mib")
"""And of any, behind them."""


def number(value: float) -> str:
    """Three digits or all of its whole ones: 1,150, 12.3, 0.0016, 7e-07."""
    size = abs(value)
    if not math.isfinite(value) or size >= _LARGEST:
        return f"{value:.3g}"
    if size >= 100 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else _small(value)


def _small(value: float) -> str:
    return f"{value:.3g}" if abs(value) >= _SMALLEST else f"{value:.0e}"


def share(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def memory(mib: float) -> str:
    if mib < 1:
        return f"{1024 * mib:,.0f} KiB"
    return f"{mib:,.0f} MiB" if mib < 1024 else f"{number(mib / 1024)} GiB"


def seconds(value: float) -> str:
    return span(value) if value >= 10 else f"{number(value)} s"


_UNITS: Mapping[str, Callable[[float], str]] = {
    "_mib": memory,
    "_mb": lambda mb: f"{number(mb)} MB",
    "_share": share,
    "_per_s": lambda rate: f"{number(rate)}/s",
    "_s": seconds,
}


def figure(name: str, value: float) -> str:
    """One of a worker's figures: `memory_mib` 1150 is `memory 1.12 GiB`."""
    for suffix, shown in _UNITS.items():
        if name.endswith(suffix) and math.isfinite(value):
            return f"{_words(name.removesuffix(suffix))} {shown(value)}"
    return f"{_words(name)} {number(value)}"


def figures(role: Role, metrics: Mapping[str, float]) -> str:
    """All of a worker's, those first that say most."""
    first = [name for name in (*_FIRST.get(role, ()), *_EVERY) if name in metrics]
    return ", ".join(figure(name, metrics[name]) for name in dict.fromkeys((*first, *sorted(metrics))))


def _words(name: str) -> str:
    return name.replace("_", " ")
