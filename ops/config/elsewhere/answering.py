"""Answers every key that somebody wrote for another program, and makes of the answers a tree of ours that loads. Pure.

Invariant: each written key has exactly one answer, as has each default that cannot be worked out, and a value that would keep
the tree from loading is left out of it and said so in its answer.
"""

import difflib
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from ops.config.elsewhere.answer import Answer, Answers
from ops.config.elsewhere.fitting import refused
from ops.config.elsewhere.reading import Read
from ops.config.elsewhere.row import ABSENT, Kind, Program, Row, Said, Several
from ops.config.elsewhere.typed import typed
from ops.config.elsewhere.written import Depends, Open, Unfit, Written

_MOST_COMPARED = 20
"""Unknown keys whose nearest known one is looked for, which takes a while for each."""


def answers(program: Program, read: Read) -> Answers:
    """Of a file's keys, and of those that the program takes by default."""
    program = program.of(read.values)
    defaults = {row.theirs: row.default for row in program.rows if row.default is not ABSENT}
    written = Written(read.values, defaults)
    found = list(_written(program, read, written))
    said = {ours for answer in found for ours in answer.ours}
    found += [*_defaults(program, read, written, said), *_settings(program)]
    return Answers(program, tuple(_that_load(program, _once(found))))


def _written(program: Program, read: Read, written: Written) -> Iterator[Answer]:
    order = {row.theirs: index for index, row in enumerate(program.rows)}
    unknown = 0
    rows = {key: program.row_of(key) for key in (*read.values, *sorted(read.removed))}
    for key in sorted(rows, key=lambda key: order[row.theirs] if (row := rows[key]) else len(order)):
        row = rows[key]
        if key in read.removed:
            yield Answer(key, None, Kind.NOTHING, "it is taken away there (~), so it is as if nobody had written it")
        elif row is None:
            unknown += 1
            words = f"{program.name} has no such key that is known here"
            nearest = _nearest(program, key) if unknown <= _MOST_COMPARED else ""
            yield Answer(key, read.values[key], Kind.UNKNOWN, f"{words}; the nearest is {nearest}" if nearest else words)
        else:
            answer = _answer(row, key, read.values[key], written)
            if key in read.conditional:
                answer = replace(answer, words=_joined(answer.words, "a branch of the script sets it so"))
            yield answer
    for text, why in read.unread.items():
        yield Answer("", text, Kind.INSTEAD, why)


def _defaults(program: Program, read: Read, written: Written, said: Set[str]) -> Iterator[Answer]:
    """Those that come to keys of ours, or to something that a person has to say and has not."""
    for row in program.rows:
        if row.default is not ABSENT and row.theirs not in read.values:
            answer = _answer(row, row.theirs, row.default, written)
            if answer.ours or (answer.kind is Kind.INSTEAD and said.isdisjoint(row.ours)):
                words = answer.words if answer.ours else f"its default: {answer.words}"
                yield replace(answer, is_default=True, words=words)


def _settings(program: Program) -> Iterator[Answer]:
    for setting in program.settings:
        yield Answer("", None, Kind.OURS, setting.why, {setting.ours: setting.value}, is_default=True)


def _answer(row: Row, key: str, value: object, written: Written) -> Answer:
    if value == {} or (value in (None, "", []) and row.is_plain):
        return Answer(key, value, Kind.NOTHING, "it is left open there")
    if row.is_plain:
        return Answer(key, value, row.kind, row.words)
    if isinstance(value, Open):
        asked = " and ".join(row.ours) or "it"
        return Answer(
            key, value, Kind.INSTEAD, f"write {asked}: what {value.text} stands for is known where the script runs alone"
        )
    if value is None:
        if row.null is ABSENT:
            return Answer(key, value, Kind.NOTHING, "it is left open there")
        value = row.null
    if row.kind is Kind.SAME:
        fits = not row.usual or any(_equal(value, each) for each in row.usual)
        return Answer(key, value, Kind.SAME if fits else Kind.INSTEAD, row.words if fits else row.otherwise)
    return _converted(row, key, value, written)


def _converted(row: Row, key: str, value: object, written: Written) -> Answer:
    try:
        became = row.convert(value, written)
        if isinstance(became, Said):
            return Answer(key, value, became.kind, became.words, became.stands_in)
        if isinstance(became, Several):
            pairs, words = dict(became.values), became.words or row.words
        else:
            pairs, words = dict.fromkeys(row.ours, became), row.words
        if row.theirs.endswith(".*"):
            pairs = {f"{ours}.{key.removeprefix(row.theirs[:-1])}": each for ours, each in pairs.items()}
        return Answer(key, value, Kind.OURS, words, {ours: typed(ours, each) for ours, each in pairs.items()})
    except (Depends, Unfit, ValueError, OverflowError) as error:
        said = str(error) if isinstance(error, Depends | Unfit) else "does not fit"
        return Answer(
            key, value, Kind.INSTEAD, f"write {' and '.join(row.ours)}: {said}" if row.ours else _joined(row.words, said)
        )


def _once(found: Sequence[Answer]) -> Iterator[Answer]:
    """Of several keys that say the same of ours, the first counts; a default never where something is written."""
    said: dict[str, tuple[object, str]] = {}
    for answer in found:
        taken = {ours: said[ours] for ours in answer.ours if ours in said}
        new = {ours: value for ours, value in answer.ours.items() if ours not in said}
        said.update({ours: (value, answer.key) for ours, value in new.items()})
        other = next((key for ours, (value, key) in taken.items() if value != answer.ours[ours]), None)
        if answer.is_default and answer.ours:
            if new:
                yield replace(answer, ours=new)
        elif other is not None and not new:
            yield replace(answer, kind=Kind.NOTHING, words=f"{other} says it otherwise, and counts", ours={})
        else:
            yield replace(answer, ours={ours: value for ours, value in answer.ours.items() if ours in new or other is None})


def _that_load(program: Program, found: Iterator[Answer]) -> Iterator[Answer]:
    """Those whose values cannot stand beside the others become what a person has to write himself."""
    given = list(found)
    left_out = refused(program.recipe, given)
    for index, answer in enumerate(given):
        if (complaint := left_out.get(index)) is None:
            yield answer
        elif not answer.is_default:
            yield replace(answer, kind=Kind.INSTEAD, words=f"write it another way: {complaint}", ours={})


def _equal(value: object, other: object) -> bool:
    if isinstance(other, bool) and isinstance(value, str):
        return value.lower() == str(other).lower()
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _nearest(program: Program, key: str) -> str:
    names = [row.theirs for row in program.rows if "*" not in row.theirs]
    return next(iter(difflib.get_close_matches(key, names, n=1)), "")


def _joined(words: str, more: str) -> str:
    return f"{words}; {more}" if words else more
