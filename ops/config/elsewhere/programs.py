"""The programs whose keys are known, and the sentence for whoever writes one of them as a key of ours."""

from collections.abc import Collection

from ops.config.elsewhere.agentfly import AGENTFLY
from ops.config.elsewhere.rlinf import RLINF
from ops.config.elsewhere.row import Kind, Program, Row
from ops.config.elsewhere.vagen import VAGEN
from ops.config.elsewhere.verl import VERL
from ops.config.elsewhere.webgym import WEBGYM
from ops.config.webgym_keys import SAME_AS, SPLIT, WITHOUT_EFFECT

PROGRAMS: dict[str, Program] = {program.option: program for program in (WEBGYM, VERL, AGENTFLY, VAGEN, RLINF)}
_OTHERS = (VERL, AGENTFLY, VAGEN, RLINF)


def said_otherwise(key: str) -> str:
    """A sentence for whoever writes another program's key; empty when it is none.

    A key of our own groups is none, and neither is what a table answers by its first part alone.
    """
    if key.partition(".")[0].endswith("_config"):
        return ""
    found = [(program, row) for program in _OTHERS if (row := program.row_of(key)) and not row.theirs.startswith("*")]
    if not found:
        return ""
    row = found[0][1]
    names = [program.name for program, each in found if (each.kind, each.ours) == (row.kind, row.ours)]
    whose = f"{', '.join(names[:-1])}{' and ' * (len(names) > 1)}{names[-1]}"
    return f"{key} is a key of {whose}: {_advice(row)}"


def likelier(program: Program, keys: Collection[str]) -> Program | None:
    """The program that has more of these keys, where one has."""
    known = {each.option: sum(each.row_of(key) is not None for key in keys) for each in PROGRAMS.values()}
    best = max(known, key=lambda option: known[option])
    return PROGRAMS[best] if known[best] > known[program.option] else None


def _advice(row: Row) -> str:
    in_file = f"{row.setting} in the DeepSpeed file that is named there" if row.setting else ""
    words = "; ".join(filter(None, (in_file, row.words.replace("`", ""))))
    match row.kind:
        case Kind.OURS:
            return f"write {' and '.join(row.ours)} here{f' ({words})' if words else ''}"
        case Kind.INSTEAD:
            return words
        case _:
            return f"leave it out: {words}"


def webgym_words(key: str) -> str:
    """What becomes of a key of WebGym's that is none of ours; empty when it is not one of those."""
    if key in SAME_AS:
        return f"WebGym's name for {SAME_AS[key]}: either may be written"
    if key == SPLIT:
        return "train or test, as WebGym has it: says the mode where feeder_config.mode is not written"
    if entry := WITHOUT_EFFECT.get(key):
        return f"WebGym's; has no effect here: {entry.why}. To change it, {entry.instead}"
    return ""
