"""The tables of docs/configuration_keys.md and docs/configuration_names.md, made of what the code itself goes by."""

from collections.abc import Iterator

from ops.config.display import scalar
from ops.config.key_docs import KeyDoc, key_docs
from ops.config.names import NAMES
from ops.config.resolved import plain
from ops.config.webgym_keys import SAME_AS, SPLIT, WITHOUT_EFFECT

_KEYS = """\
# Every key

Made by `millrace config --markdown keys` from the dataclasses in `schemas/`; [configuration.md](configuration.md) says how
they are set. Names, units and defaults of WebGym's reference are kept."""
_NAMES = """\
# Names elsewhere, names here

Made by `millrace config --markdown names`. Only what has a meaning here is listed. Whoever writes a name of the last table
as an override, or in a file, is told ours."""


def keys_page() -> str:
    return "\n".join([_KEYS, *_key_tables()]) + "\n"


def names_page() -> str:
    return "\n".join([_NAMES, *_webgym_tables(), *_name_table()]) + "\n"


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


def _webgym_tables() -> Iterator[str]:
    yield from (
        "",
        "## WebGym",
        "",
        "All keys of its reference are keys here, by the same names, except those of these two tables.",
        "",
    )
    yield from ("| WebGym | here |", "|---|---|")
    yield from (f"| `{theirs}` | `{ours}`, under either name |" for theirs, ours in SAME_AS.items())
    yield f"| `{SPLIT}` | `feeder_config.mode`: `test` is `eval`; `train` is `rollout` without any `algorithm_config` |"
    yield from (
        "",
        "These, some of which are only in its files, have no effect. They load with WebGym's own value; any other is refused",
        "with what stands on the right. Values that stand for nothing, as `<save_path_here>` or `model.pt` for a checkpoint",
        "that is to come, are as if they were left out.",
        "",
    )
    yield from ("| WebGym | its value | what is done here | instead |", "|---|---|---|---|")
    for key, entry in WITHOUT_EFFECT.items():
        values = ", ".join(f"`{scalar(value)}`" for value in entry.published)
        yield f"| `{key}` | {values} | {entry.why} | {entry.instead} |"


def _name_table() -> Iterator[str]:
    yield from ("", "## RLinf, AgentFly, VAGEN", "", "| there | of | here | difference |", "|---|---|---|---|")
    for name in NAMES:
        yield f"| `{name.theirs}` | {name.programs} | `{name.ours}` | {name.difference} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
