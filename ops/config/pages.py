"""The page docs/configuration_keys.md, made of the dataclasses themselves."""

from collections.abc import Iterator

from ops.config.display import scalar
from ops.config.key_docs import KeyDoc, key_docs
from ops.config.resolved import plain

_KEYS = """\
# Every key

Made by `millrace config --markdown keys` from the dataclasses in `schemas/`; [configuration.md](configuration.md) says how
they are set. Names, units and defaults of WebGym's reference are kept."""


def keys_page() -> str:
    return "\n".join([_KEYS, *_key_tables()]) + "\n"


def _key_tables() -> Iterator[str]:
    alone = [doc for doc in key_docs().values() if "." not in doc.key and not doc.is_group]
    yield from ("", "| key | default | |", "|---|---|---|", *(_row(doc, doc.key) for doc in alone))
    for group in key_docs().values():
        if group.is_group and "." not in group.key:
            yield from ("", f"## {group.key}", "", _cell(group.text), "", "| key | default | |", "|---|---|---|")
            yield from (_row(doc, key.removeprefix(f"{group.key}.")) for key, doc in _inside(group.key))


def _inside(group: str) -> Iterator[tuple[str, KeyDoc]]:
    return ((key, doc) for key, doc in key_docs().items() if key.startswith(f"{group}.") and not doc.is_group)


def _row(doc: KeyDoc, name: str) -> str:
    text = doc.text
    if doc.kind.startswith("one of "):
        text = f"{text} {doc.kind[0].upper()}{doc.kind[1:]}."
    return f"| `{name}` | `{_cell(scalar(plain(doc.default)))}` | {_cell(text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
