"""Text from outside (pages, tasks, earlier answers), made fit for a prompt: it can never spell one of the model's control
tokens, and never takes more room than it was given."""

import re
from collections import defaultdict
from collections.abc import Iterable


def plain(text: str) -> str:
    """Text that no tokenizer reads as control tokens such as `<|im_end|>`. Those of other forms are known by `beginnings`."""
    return text.replace("<|", "< |")


def beginnings(control_texts: Iterable[str]) -> re.Pattern[str]:
    """Finds the first character of each of these texts, behind which `parted` parts them."""
    rests = defaultdict[str, list[str]](list)
    for text in control_texts:
        rests[text[:1]].append(re.escape(text[1:]))
    return re.compile("|".join(f"{re.escape(first)}(?={'|'.join(each)})" for first, each in rests.items()) or r"(?!)")


def parted(text: str, found_by: re.Pattern[str]) -> str:
    """As in `< IMG_CONTEXT>`."""
    return found_by.sub(r"\g<0> ", text)


def short(text: str, limit: int) -> str:
    """One line of at most `limit` characters."""
    line = " ".join(text.split(None, limit)[:limit])  # that many words are too long in any case
    return line if len(line) <= limit else line[: limit - 1] + "…"


def fitting(lines: Iterable[str], *, max_bytes: int) -> list[str]:
    """The first lines that take at most `max_bytes` of UTF-8, newlines included. Byte-level tokenizers make at most one token
    of a byte, so this bounds tokens too; in English, a token is about four bytes."""
    kept: list[str] = []
    for line in lines:
        max_bytes -= len(line.encode("utf-8", "replace")) + 1
        if max_bytes < 0:
            break
        kept.append(line)
    return kept
