"""Draws what is being played, in the place of a curve that has not begun: counts by page, and the newest episodes. Pure."""

from rich.text import Text

from ops.monitor.view import Feed

_FAINT = "bright_black"
_LATEST = 6
"""Newest episodes that are shown before pages take more room."""
_NAME, _BAR = 28, 22


def draw_feed(feed: Feed, width: int, height: int) -> list[Text]:
    """At most `height` lines of at most `width` columns."""
    if not feed.pages:
        return [_line(feed.waits_for, f"italic {_FAINT}")]
    num_pages = max(1, min(len(feed.pages), height - 1 - min(_LATEST, len(feed.latest))))
    most = max(count for _, count in feed.pages)
    lines = [_page(name, count, most) for name, count in feed.pages[:num_pages]]
    if num_pages < len(feed.pages):
        lines[-1] = _line(f"and {len(feed.pages) - num_pages + 1} more pages", _FAINT)
    lines.append(_line("newest", _FAINT))
    lines += [_line(each) for each in feed.latest]
    for line in lines:
        line.truncate(max(1, width), overflow="ellipsis")
    return lines[:height]


def _page(name: str, count: int, most: int) -> Text:
    line = _line(f"{name:<{_NAME}.{_NAME}} ")
    line.append("━" * max(1, round(_BAR * count / most)), "cyan")
    line.append(f" {count:,}", "bold")
    return line


def _line(text: str, style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")
