"""The live episodes as coloured cells: letter and colour for the phase, and the step's number. Pure."""

from collections import Counter

from rich.text import Text

from ops.monitor.cells import Cells, Phase, by_attention
from ops.monitor.screen.colours import FAINT, cell_mark
from ops.monitor.screen.lines import line

_WIDTH = 5
"""A letter, up to three digits, a gap."""


def grid_height(cells: Cells, width: int) -> int:
    """Lines that hold every cell."""
    return -(-len(cells) // max(1, width // _WIDTH))


def cell_grid(cells: Cells, width: int, height: int) -> list[Text]:
    """At most `height` lines; what has no room is counted in the last one."""
    if height < 1:
        return []
    columns = max(1, width // _WIDTH)
    order = by_attention(cells.by_episode)
    room = columns * height if len(order) <= columns * height else columns * (height - 1)
    lines = []
    for start in range(0, min(len(order), room), columns):
        text = line()
        for cell in order[start : min(start + columns, room)]:
            letter, style = cell_mark(cell)
            number = "" if cell.phase is Phase.QUEUED else str(cell.step + 1)
            text.append(f"{letter}{number:>3}", style)
            text.append(" ")
        lines.append(text)
    if len(order) > room:
        left = Counter(cell.phase for cell in order[room:])
        rest = ", ".join(f"{count:,} {phase.value}" for phase, count in left.items())
        lines.append(line(f"and {rest}", FAINT))
    return lines
