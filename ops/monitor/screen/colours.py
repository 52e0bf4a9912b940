"""Colours and letters, the same in every view."""

from ops.monitor.alerts.alert import Severity
from ops.monitor.cells import Cell, Phase
from schemas.messages import Verdict

FAINT = "bright_black"
LETTERS = {
    Phase.QUEUED: "q",
    Phase.OPENING: "O",
    Phase.DECIDING: "D",
    Phase.ACTING: "A",
    Phase.JUDGING: "J",
    Phase.ENDED: "e",
}
STYLES = {
    Phase.QUEUED: "bright_black",
    Phase.OPENING: "black on yellow",
    Phase.DECIDING: "black on cyan",
    Phase.ACTING: "white on blue",
    Phase.JUDGING: "white on magenta",
    Phase.ENDED: "green",
}
SEVERITIES = {Severity.CRITICAL: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_VERDICTS = {
    Verdict.SUCCESS: ("S", "bold green"),
    Verdict.FAILURE: ("F", "red"),
    Verdict.EXCLUDED: ("x", "bright_black"),
    Verdict.ERROR: ("!", "bold red"),
}
_STATES = {"working": "green", "training": "green", "waiting": "bright_black", "paused": "bold red"}


def cell_mark(cell: Cell) -> tuple[str, str]:
    """A letter and its style."""
    if cell.phase is Phase.ENDED and cell.verdict is not None:
        return _VERDICTS[cell.verdict]
    return LETTERS[cell.phase], STYLES[cell.phase]


def state_style(state: str, *, silent: bool) -> str:
    return "red" if silent else _STATES.get(state, "yellow")
