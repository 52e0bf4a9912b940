"""Defines what a table says of one key of another program, and what became of a key that somebody wrote. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ops.config.elsewhere.written import Written

DEEPSPEED = "algorithm_config.deepspeed_config_filename"
IN_FILE = "deepspeed."
"""Before the name of a setting of the DeepSpeed file, where a conversion answers with it."""


class Kind(StrEnum):
    OURS = "mapped"
    """A key of ours, with a value."""
    SAME = "same"
    """What is always done here."""
    NOTHING = "no effect"
    INSTEAD = "instead"
    """A person has to say it in another way."""
    UNKNOWN = "unknown"


class Absent:
    """Stands for a value that there is not, since null is one."""


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Several:
    """Values of more keys than one, or of settings of the DeepSpeed file."""

    values: Mapping[str, object]
    words: str = ""
    """What was converted, where the row does not say it."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is to be said instead of a value of ours."""

    kind: Kind
    words: str
    stands_in: Mapping[str, object] = field(default_factory=dict)
    """Values of ours that keep the rest in order until somebody has said it."""


Convert = Callable[[object, Written], object]
"""Their value, and all that was written: ours, `Several`, or what is `Said`. Raises `Unfit` for a value of a wrong kind."""


def unchanged(value: object, _: Written) -> object:
    return value


@dataclass(frozen=True, slots=True)
class Row:
    theirs: str
    """A key; `a.*`: all below a that have no row of their own; a first part `*`: any name; `**.a`: a in any group."""
    kind: Kind
    ours: tuple[str, ...] = ()
    words: str = ""
    """Mapped: the difference; else why, or what to write, in a clause."""
    convert: Convert = unchanged
    usual: tuple[object, ...] = ()
    """`SAME`: values that come to what is done here; another one is answered with `otherwise`. None: all do."""
    otherwise: str = ""
    default: object = ABSENT
    """What it is there where nobody writes it, if that matters here."""
    null: object = ABSENT
    """What null stands for; absent: it leaves the key open."""
    setting: str = ""
    """Of the DeepSpeed file, where it is one."""

    @property
    def is_plain(self) -> bool:
        """Whether its answer is the same for every value."""
        return self.kind in (Kind.NOTHING, Kind.INSTEAD) and self.convert is unchanged

    def answers(self, key: str) -> bool:
        if self.theirs.startswith("**."):
            return key.endswith(self.theirs[2:])
        theirs, name = self.theirs.split("."), key.split(".")
        if theirs[-1] == "*":
            theirs, name = theirs[:-1], name[: len(theirs) - 1] if len(name) >= len(theirs) else []
        return len(theirs) == len(name) and all(a in ("*", b) for a, b in zip(theirs, name, strict=True))


@dataclass(frozen=True, slots=True)
class Setting:
    """What a program does without a key for it."""

    ours: str
    value: object
    why: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program: its table, and what its keys count."""

    name: str
    option: str
    rows: tuple[Row, ...]
    settings: tuple[Setting, ...] = ()
    recipe: str = "update_online"
    """What a configuration that is made of one of its own begins with."""
    beside: str = ""
    """The program whose table counts beside this one's."""
    inherited: frozenset[str] = frozenset()
    """Keys whose rows are that program's."""
    older: "Program | None" = None
    """Of an older version, where defaults were others; its files have keys below `older_group`."""
    older_group: str = ""

    def of(self, keys: Iterable[str]) -> "Program":
        """The version whose keys these are."""
        return self.older if self.older and any(key.startswith(f"{self.older_group}.") for key in keys) else self

    @property
    def own_rows(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.theirs not in self.inherited)

    def knows(self, key: str) -> bool:
        """In either version."""
        return self.row_of(key) is not None or (self.older is not None and self.older.knows(key))

    def row_of(self, key: str) -> Row | None:
        """The key's own row, else that of the smallest group that it is in."""
        if own := next((row for row in self.rows if row.theirs == key), None):
            return own
        found = [row for row in self.rows if row.answers(key)]
        return min(found, key=lambda row: (row.theirs.endswith("*"), -row.theirs.count("."), "*" in row.theirs), default=None)


def extended(program: Program, base: Program, defaults: Mapping[str, object] | None = None) -> Program:
    """With the rows of another program behind its own, where it has none for the key; `defaults`: where they are others."""
    others = defaults or {}
    own = (*program.rows, *(replace(row, default=others[row.theirs]) for row in base.rows if row.theirs in others))
    known = {row.theirs for row in own}
    rest = tuple(row for row in base.rows if row.theirs not in known)
    return replace(program, rows=(*own, *rest), beside=base.name, inherited=frozenset(row.theirs for row in rest))


def ours(
    theirs: str,
    key: str | tuple[str, ...],
    words: str = "",
    convert: Convert = unchanged,
    *,
    default: object = ABSENT,
    null: object = ABSENT,
) -> Row:
    """It is one of our keys, or several."""
    keys = (key,) if isinstance(key, str) else key
    return Row(theirs, Kind.OURS, keys, words, convert, default=default, null=null)


def in_file(theirs: str, setting: str, convert: Convert, words: str = "", *, default: object = ABSENT) -> Row:
    """It is a setting of the DeepSpeed file."""
    return Row(theirs, Kind.OURS, (DEEPSPEED,), words, convert, default=default, setting=setting)


def same(theirs: str, usual: object, words: str, otherwise: str = "") -> Row:
    """It is always so here, with their value(s); what else may be written is answered with `otherwise`."""
    values = usual if isinstance(usual, tuple) else (usual,)
    return Row(theirs, Kind.SAME, (), words, usual=values, otherwise=otherwise)


def nothing(theirs: str | Iterable[str], words: str) -> tuple[Row, ...]:
    """They have no effect here, whatever their values. Several stand in one text, with spaces between them, or in a list."""
    return tuple(Row(each, Kind.NOTHING, (), words) for each in _each(theirs))


def instead(theirs: str | Iterable[str], words: str) -> tuple[Row, ...]:
    """A person has to say it in another way: `words` begins with a verb."""
    return tuple(Row(each, Kind.INSTEAD, (), words) for each in _each(theirs))


def _each(theirs: str | Iterable[str]) -> Iterable[str]:
    return theirs.split() if isinstance(theirs, str) else theirs


def under(group: str, names: str) -> tuple[str, ...]:
    """`group.name` for each of the names, which have spaces between them."""
    return tuple(f"{group}.{name}" for name in names.split())
