"""Words of others, made safe to show: a terminal obeys control characters, and nothing is longer than a screen. Pure."""

_MOST = 500


def visible(text: str, most: int = _MOST) -> str:
    """Without control characters; cut off behind `most`."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return cut if cut.isprintable() else "".join(letter if letter.isprintable() else " " for letter in cut)
