"""Judges of a person's own: declared in a module with `@judge`, or by a package under an entry point, and found by name.

    from judges.episode import JudgedEpisode
    from judges.registry import judge

    @judge("right_price_v1")
    def right_price(episode: JudgedEpisode) -> bool:
        return episode.trajectory.answer == "12.90"

`judge_config.modules` names the module, `judge_config.judge` (or a part of a composite) the judge. An installed package needs
no entry in `modules`: its entry points of the group `millrace.judges` have the names of its judges, and are loaded when asked
for. No name stands for two judges.
"""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from inspect import iscoroutinefunction
from types import ModuleType
from typing import TypeGuard

from judges.function_judge import FunctionJudge, JudgingFunction
from judges.judge import Judge
from judges.module_loading import load
from schemas.errors import ConfigurationError

ENTRY_POINTS = "millrace.judges"


def judge(name: str) -> Callable[[JudgingFunction], FunctionJudge]:
    """Makes a judge of a function from an episode to True, False, a reward from 0 to 1, or a `Ruling`; it may be `async`.

    `name` is stored with its judgements and says the version, as in `right_price_v1`: one that judges differently has another.
    """
    return lambda function: FunctionJudge(name, function)


def find(name: str, modules: Iterable[str], taken: Iterable[str] = (), setting: str = "judge_config.judge") -> Judge:
    """The judge of that name among those of `modules` (names, or paths of .py files) and of installed packages.

    `taken` are the names that stand for other judges: Millrace's own, and composites. `setting` is where the name was written.

    Raises:
        ConfigurationError: there is none, a name stands for two, or a module cannot be imported.
    """
    taken = tuple(taken)
    declared = _declared(modules)
    offered = _offered()
    places = dict.fromkeys(offered, "an installed package") | {each: source for each, (_, source) in declared.items()}
    for known, place in places.items():
        if known in taken:
            raise ConfigurationError(f"{place} has a judge {known}, as there is one already: give it another name")
    if name in declared and name in offered:
        raise ConfigurationError(f"{declared[name][1]} and an installed package both have a judge {name}: rename one")
    if name in declared:
        return declared[name][0]
    if name in offered:
        return _loaded(offered[name])
    raise ConfigurationError(f"{setting}: {_no_such(name, sorted({*taken, *declared, *offered}))}")


def _declared(modules: Iterable[str]) -> dict[str, tuple[Judge, str]]:
    """Every judge in the modules, with the module's name."""
    found: dict[str, tuple[Judge, str]] = {}
    for source in dict.fromkeys(modules):
        for each in _judges_in(load(source)):
            known, where = found.setdefault(each.name, (each, source))
            if known is not each:
                places = f"{where} has two judges" if where == source else f"{where} and {source} both have a judge"
                raise ConfigurationError(f"judge_config.modules: {places} {each.name}: rename one")
    return found


def _judges_in(module: ModuleType) -> Iterator[Judge]:
    return (value for value in vars(module).values() if _is_judge(value))


def _is_judge(value: object) -> TypeGuard[Judge]:
    is_named = isinstance(getattr(value, "name", None), str)
    return is_named and not isinstance(value, type) and iscoroutinefunction(getattr(value, "judge", None))


def _offered() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for each in entry_points(group=ENTRY_POINTS):
        known = found.setdefault(each.name, each)
        if known.value != each.value:
            raise ConfigurationError(
                f"two installed packages have a judge {each.name} ({known.value} and {each.value}): uninstall one"
            )
    return found


def _loaded(entry_point: EntryPoint) -> Judge:
    where = f"the entry point {entry_point.name} = {entry_point.value} of an installed package"
    try:
        value = entry_point.load()
    except Exception as error:
        raise ConfigurationError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if not _is_judge(value):
        raise ConfigurationError(f"{where} is no judge but {value!r}: decorate it with @judge({entry_point.name!r})")
    if value.name != entry_point.name:
        raise ConfigurationError(f"{where} is the judge {value.name}: both names must be equal")
    return value


def _no_such(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}? " if near else ". "
    return (
        f"there is no judge {name}{hint}Write one of {', '.join(known) or 'your own'}; judge_config.modules names the modules "
        "of your own"
    )
