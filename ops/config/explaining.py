"""Explains a key in lines: all there is to say of one key, the keys of a group, the nearest to an unknown one."""

import difflib
from collections.abc import Iterator

from ops.config.display import scalar
from ops.config.elsewhere.programs import said_otherwise, webgym_words
from ops.config.key_docs import KeyDoc, key_docs
from ops.config.resolved import Resolved, plain
from ops.config.schema import known_keys, nearest_key
from schemas.errors import ConfigurationError

_NEAREST = 3


def explained(key: str, resolved: Resolved) -> Iterator[str]:
    """Raises `ConfigurationError` when there is no such key; names those that look like it."""
    docs = key_docs()
    if words := webgym_words(key):
        yield f"{key}: {words}"
        return
    if key not in docs:
        raise ConfigurationError(said_otherwise(key) or f"there is no key {key}: did you mean {', '.join(_near(key))}?")
    if docs[key].is_group:
        yield from _group(docs[key], resolved)
    else:
        yield from _one(docs[key], resolved)


def _one(doc: KeyDoc, resolved: Resolved) -> Iterator[str]:
    here = resolved.values[doc.key]
    yield doc.key
    yield f"  {doc.text}"
    yield ""
    yield f"  type     {doc.kind}"
    if doc.unit:
        yield f"  unit     {doc.unit}"
    yield f"  default  {scalar(plain(doc.default))}"
    yield f"  here     {scalar(here.value)}   ({here.origin})"


def _group(group: KeyDoc, resolved: Resolved) -> Iterator[str]:
    yield group.key
    yield f"  {group.text}"
    for key, here in resolved.values.items():
        if key.startswith(f"{group.key}."):
            yield ""
            yield f"  {key} = {scalar(here.value)}   ({here.origin})"
            yield f"    {key_docs()[key].text}"


def _near(key: str) -> list[str]:
    """Whole keys that look like it, the likeliest first; a lacking group is forgiven."""
    names = [*known_keys(), *(doc.key for doc in key_docs().values() if doc.is_group)]
    found = [nearest_key(key), *difflib.get_close_matches(key, names, n=_NEAREST, cutoff=0.5)]
    return list(dict.fromkeys(found))[:_NEAREST]
