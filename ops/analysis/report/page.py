"""A report as one HTML page that needs nothing besides itself: no script, no font, no screenshot from elsewhere.

Sites, domains, reasons and workers may hold whatever a task file or a web page put there: all of it is escaped, and the page's
own policy lets nothing run and nothing load.
"""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ops.analysis.report.charts import STYLE, draw
from ops.analysis.report.tables import Cell, Headline, Section, Table, interval, percent, shown
from ops.statistics.shares import Share
from schemas.text import visible

_LONGEST = 200


def page(title: str, about: Sequence[str], headlines: Sequence[Headline], sections: Sequence[Section]) -> str:
    """`about`: sentences under the title."""
    return _PAGE.render(
        title=title, about=about, headlines=[_headline(each) for each in headlines], sections=sections, style=STYLE
    )


def text(value: object) -> object:
    """Words that anybody may have written become visible, and are cut off; markup stays."""
    return visible(value, _LONGEST) if type(value) is str else value


def _headline(headline: Headline) -> tuple[str, str, str]:
    value, note = shown(headline.value), headline.note
    if isinstance(headline.value, Share) and headline.value.value is not None:
        share = headline.value
        of = f"{interval(share)} · {share.count:,} of {share.number:,}"
        value, note = percent(share.value or 0.0), f"{of} · {note}" if note else of
    return headline.label, value, note


def _anchor(section: Section) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in section.title.lower())


def _is_words(table: Table, column: int) -> bool:
    return any(isinstance(row[column], str) for row in table.rows)


def _is_share(cell: Cell) -> bool:
    return isinstance(cell, Share) and cell.value is not None


_PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
    finalize=text,
)
_PAGES.filters |= {"anchor": _anchor, "drawn": draw, "interval": interval, "percent": percent, "shown": shown}
_PAGES.tests |= {"share": _is_share}
_PAGES.globals["is_words"] = _is_words
_PAGE = _PAGES.get_template("page.html")
