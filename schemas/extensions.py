"""Finds the parts that a configuration names: estimators, losses, samplers, judges, suites and all else that anyone may add.

A part is a function or class under the decorator of its kind, as in `@estimator("grpo")`. It is named in one of three ways:

    grpo                      the module of that name in the kind's folder (trainer/estimators/grpo.py), or else the entry
                              point of that name and of the kind's group (millrace.estimators) of an installed package
    our_objectives:fair       what a module on the Python path declares under that name
    ./objectives.py:fair      what a file declares under that name
"""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from schemas.errors import ConfigurationError

Made = TypeVar("Made")
Traits = TypeVar("Traits")
_MARK = "millrace_part"


@dataclass(frozen=True, slots=True, eq=False)
class Part(Generic[Made, Traits]):
    """What a decorator declared."""

    kind: str
    name: str
    made: Made
    """The function, class or object itself."""
    traits: Traits
    """What has to be known of it before it is used."""


@dataclass(frozen=True)
class Kind:
    """A kind of part, and where it is looked for."""

    name: str
    """In the singular, as in `estimator`."""
    package: str
    """Of the parts that come with Millrace: one module each, of the same name."""
    setting: str
    """The key of the configuration, or the option of a command, that names a part."""
    also: tuple[str, ...] = ()
    """Names that stand for something else, and are known too."""

    @property
    def plural(self) -> str:
        if self.name.endswith("y"):
            return f"{self.name[:-1]}ies"
        return f"{self.name}es" if self.name.endswith("s") else f"{self.name}s"

    @property
    def group(self) -> str:
        """Of entry points."""
        return f"millrace.{self.plural}"

    @property
    def builtin(self) -> tuple[str, ...]:
        """Names of the parts that come with Millrace, sorted. Nothing of them is imported."""
        spec = importlib.util.find_spec(self.package)
        assert spec is not None
        return tuple(sorted(module.name for module in pkgutil.iter_modules(spec.submodule_search_locations)))

    @property
    def builtin_names(self) -> tuple[str, ...]:
        """All that can be written where no other package is installed."""
        return (*self.also, *self.builtin)

    @property
    def names(self) -> tuple[str, ...]:
        """All that can be written without a colon: Millrace's own, then those of installed packages."""
        return tuple(dict.fromkeys((*self.builtin_names, *sorted(self._installed()))))

    def declare(self, name: str, made: Made, traits: Traits) -> Made:
        """Marks a function, class or object as a part; what the decorators of the kinds do."""
        setattr(made, _MARK, Part(self.name, name, made, traits))
        return made

    def require_known(self, name: str, *, written_in: str = "") -> None:
        """Imports nothing: whether a module has what is behind the colon shows when it is used.

        Args:
            name: of a part.
            written_in: where that stands; empty: in the kind's own setting.

        Raises:
            ConfigurationError: no part has that name.
        """
        if ":" not in name and name not in self.names:
            raise ConfigurationError(self._no_such(name, written_in))

    def find(self, name: str) -> Part[Any, Any]:
        """The part of that name, imported.

        Raises:
            ConfigurationError: there is none, it cannot be imported, or it is no part of this kind.
        """
        source, colon, declared = name.rpartition(":")
        if colon:
            return self._declared_in(self._loaded(source, lambda: _module(source)), source, declared)
        if name in self.builtin:
            source = f"{self.package}.{name}"
            return self._declared_in(importlib.import_module(source), source, name)
        if (offered := self._installed().get(name)) is not None:
            source = offered.module
            return self._declared_in(self._loaded(source, lambda: importlib.import_module(source)), source, name)
        raise ConfigurationError(self._no_such(name))

    def all(self, more: Iterable[str] = ()) -> tuple[Part[Any, Any], ...]:
        """Every part with a name, then those that `more` names.

        Raises:
            ConfigurationError: one of them cannot be found, or two have one name.
        """
        found: dict[str, Part[Any, Any]] = {}
        for part in map(self.find, dict.fromkeys((*self.names, *more))):
            if found.setdefault(part.name, part) is not part:
                raise ConfigurationError(f"{self.setting} has a second {self.name} {part.name}: give it another name")
        return tuple(found.values())

    def _declared_in(self, module: ModuleType, source: str, name: str) -> Part[Any, Any]:
        found: dict[str, Part[Any, Any]] = {}
        for part in filter(None, map(_part_of, vars(module).values())):
            if part.kind == self.name and found.setdefault(part.name, part) is not part:
                raise ConfigurationError(f"{self.setting}: {source} declares two {self.plural} {part.name}: rename one")
        if name in found:
            return found[name]
        has = f"it declares {', '.join(found)}" if found else f"decorate it with @{self.name}({name!r})"
        raise ConfigurationError(f"{self.setting}: {source} declares no {self.name} {name}; {has}")

    def _installed(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        for each in entry_points(group=self.group):
            known = found.setdefault(each.name, each)
            if known.value != each.value or each.name in self.builtin:
                taken = "Millrace itself has one" if each.name in self.builtin else f"{known.value} is another"
                raise ConfigurationError(
                    f"an installed package has the {self.name} {each.name} ({each.value}), and {taken}: uninstall it, or name "
                    f"it {each.value}"
                )
        return found

    def _loaded(self, source: str, load: Callable[[], ModuleType]) -> ModuleType:
        try:
            return load()
        except Exception as error:
            raise ConfigurationError(
                f"{self.setting}: {source} cannot be loaded: {type(error).__name__}: {error}. Write module:name with a module "
                "on the Python path, or with the path of a .py file, as in ./mine.py:name"
            ) from error

    def _no_such(self, name: str, written_in: str = "") -> str:
        near = get_close_matches(name, self.names, n=1)
        hint = f"; did you mean {near[0]}? Write" if near else ": write"
        return (
            f"{written_in or self.setting} is {name!r}{hint} one of {', '.join(self.names)}, or module:name for "
            f"{_article(self.name)} of your own"
        )


ESTIMATORS = Kind("estimator", "trainer.estimators", "objective_config.adv_estimator", also=("none",))
LOSSES = Kind("loss", "trainer.losses", "objective_config.loss_type")
AUGMENTATIONS = Kind("augmentation", "trainer.augmentations", "algorithm_config.augmentation", also=("none",))
SAMPLERS = Kind("sampler", "trainer.feeding.samplers", "env_config.train_tasks_sampler")
JUDGES = Kind("judge", "judges.named", "judge_config.judge")
SUITES = Kind("suite", "browser_workers.suites", "browser_config.suites")
BLOCK_HOOKS = Kind("block_hook", "browser_workers.block_hooks", "browser_config.block_hook")
PROMPTS = Kind("prompt", "agents.prompts", "model_config.prompt_version")
VOCABULARIES = Kind("vocabulary", "agents.vocabularies", "context_config.actions")
EXPORTERS = Kind("exporter", "ops.archive.formats", "--format")
ALERTS = Kind("alert", "ops.monitor.rules", "monitor_config.alerts")
KINDS = (ESTIMATORS, LOSSES, AUGMENTATIONS, SAMPLERS, SUITES, BLOCK_HOOKS, PROMPTS, VOCABULARIES, JUDGES, EXPORTERS, ALERTS)
"""Every kind there is."""


def _part_of(value: object) -> Part[Any, Any] | None:
    part = getattr(value, _MARK, None)
    # A class inherits the mark of the one that it extends.
    return part if isinstance(part, Part) and part.made is value else None


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _module(name: str) -> ModuleType:
    """Of an import's name, or of a .py file's path; each is run at most once in a process."""
    if not name.endswith(".py"):
        return importlib.import_module(name)
    path = Path(name).resolve(strict=True)
    known = f"millrace_file:{path}"
    if known in sys.modules:
        return sys.modules[known]
    spec = importlib.util.spec_from_file_location(known, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[known] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known]
        raise
    return module
