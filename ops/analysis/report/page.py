"""A report as one HTML page that needs nothing besides itself: no script, no font, no picture from elsewhere.

Sites, domains, reasons and workers may hold whatever a task file or a web page put there: all of it is escaped, and the page's
own policy lets nothing run and nothing load.
"""

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from ops.analysis.report.charts import STYLE, draw
from ops.analysis.report.tables import Cell, Headline, Section, Table, interval, percent, shown
from ops.statistics.shares import Share
from schemas.text import visible

_LONGEST = 200


def page(title: str, about: Sequence[str], headlines: Sequence[Headline], sections: Sequence[Section]) -> str:
    """`about`: sentences under the title."""
    template = files("ops.analysis.report").joinpath("page.html").read_text(encoding="utf-8")
    filled = template.replace("{{chart_style}}", STYLE)
    places = {
        "title": text(title),
        "about": "".join(f"<p>{text(sentence)}</p>" for sentence in about),
        "headlines": "\n".join(map(_headline, headlines)),
        "contents": "\n".join(f'<a href="#{_anchor(section)}">{text(section.title)}</a>' for section in sections),
        "sections": "\n".join(map(_section, sections)),
    }
    # Piece by piece, so that no mark in somebody's words is filled in.
    pieces = filled.split("{{")
    return pieces[0] + "".join(places[name] + rest for name, _, rest in (piece.partition("}}") for piece in pieces[1:]))


def text(words: str) -> str:
    return escape(visible(words, _LONGEST))


def _anchor(section: Section) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in section.title.lower())


def _headline(headline: Headline) -> str:
    value, note = shown(headline.value), headline.note
    if isinstance(headline.value, Share) and headline.value.value is not None:
        share = headline.value
        value, note = percent(share.value or 0.0), f"{interval(share)} · {share.count:,} of {share.number:,}"
    return (
        f'<div class="figure"><span class="label">{text(headline.label)}</span>'
        f'<span class="value">{text(value)}</span><span class="note">{text(note)}</span></div>'
    )


def _section(section: Section) -> str:
    note = f'<p class="note">{text(section.note)}</p>' if section.note else ""
    charts = "\n".join(f"<figure>{draw(chart)}</figure>" for chart in section.charts)
    tables = "\n".join(map(_table, section.tables))
    beside = " beside" if len(section.charts) == len(section.tables) == 1 else ""
    return (
        f'<section id="{_anchor(section)}">\n<h2>{text(section.title)}</h2>\n{note}\n<div class="body{beside}">\n'
        f'<div class="charts">{charts}</div>\n<div class="tables">\n{tables}\n</div>\n</div>\n</section>'
    )


def _table(table: Table) -> str:
    words = [any(isinstance(row[place], str) for row in table.rows) for place in range(len(table.columns))]
    head = "".join(
        f'<th scope="col"{_kind(is_words)}>{text(column)}</th>' for column, is_words in zip(table.columns, words, strict=True)
    )
    rows = "\n".join("".join(("<tr>", *_row(row), "</tr>")) for row in table.rows)
    note = f'<p class="note">{text(table.note)}</p>' if table.note else ""
    return (
        f'<div class="table">\n<h3>{text(table.title)}</h3>\n<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>\n{note}</div>"
    )


def _row(row: Sequence[Cell]) -> Iterator[str]:
    for place, cell in enumerate(row):
        if place == 0:
            yield f'<th scope="row">{text(shown(cell))}</th>'
        elif isinstance(cell, Share) and cell.value is not None:
            yield _share(cell)
        else:
            yield f"<td{_kind(isinstance(cell, str))}>{text(shown(cell))}</td>"


def _kind(is_words: bool) -> str:
    return ' class="words"' if is_words else ""


def _share(share: Share) -> str:
    low, high = share.interval or (0.0, 1.0)
    value = share.value or 0.0
    return (
        f'<td class="share"><b>{percent(value)}</b> <span class="number">{share.count:,} of {share.number:,}</span>'
        f'<span class="bar" title="95 %: {interval(share)}"><i style="width:{100 * value:.1f}%"></i>'
        f'<u style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></u></span></td>'
    )
