"""Lists the parts that a configuration can name on this machine, kind by kind."""

from rich.table import Table

from schemas.extensions import KINDS, Kind


def parts_table() -> Table:
    """Kind by kind. Nothing is imported but what says which there are."""
    table = Table(show_header=False, box=None, padding=(0, 2, 1, 0))
    for kind in KINDS:
        table.add_row(kind.name, f"{kind.setting}\n{', '.join(_names(kind))}")
    return table


def _names(kind: Kind) -> list[str]:
    return [name if name in kind.builtin_names else f"{name} (installed)" for name in kind.names]
