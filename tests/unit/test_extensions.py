"""Parts that a configuration names: Millrace's own, those of installed packages, and those of a person's files."""

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from schemas import extensions
from schemas.errors import ConfigurationError
from schemas.extensions import ESTIMATORS, KINDS, Kind
from schemas.part_settings import configured, settings_of

PARTS = """
from schemas.extensions import ESTIMATORS, LOSSES

@lambda made: ESTIMATORS.declare("fair", made, None)
def fair(): ...

@lambda made: LOSSES.declare("other", made, None)
def other(): ...

@lambda made: ESTIMATORS.declare("base", made, None)
class Base: ...

class Heir(Base): ...
"""
Installed = Callable[..., None]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Makes entry points as installed packages have them: pairs of a name and a value."""

    def install(*offered: tuple[str, str]) -> None:
        found = EntryPoints(EntryPoint(name, value, ESTIMATORS.group) for name, value in offered)
        monkeypatch.setattr(extensions, "entry_points", lambda group: found.select(group=group))

    return install


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """On the Python path."""
    (tmp_path / "our_parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "our_parts", raising=False)
    return "our_parts"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_part_of_millrace_has_the_name_of_its_file(kind: Kind) -> None:
    assert kind.builtin, "there are some"
    for name in kind.builtin:
        assert kind.find(name).name == name
        kind.require_known(name)


def test_a_file_and_a_module_are_named_before_a_colon(module: str, tmp_path: Path) -> None:
    for source in (module, str(tmp_path / "our_parts.py")):
        ESTIMATORS.require_known(f"{source}:fair")
        assert ESTIMATORS.find(f"{source}:fair").name == "fair"
        assert ESTIMATORS.find(f"{source}:fair") is ESTIMATORS.find(f"{source}:fair"), "run once"


def test_an_installed_package_offers_its_parts_by_name(module: str, installed: Installed) -> None:
    installed(("fair", f"{module}:fair"))
    assert "fair" in ESTIMATORS.names
    assert ESTIMATORS.find("fair").made is sys.modules[module].fair


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "grp",
            "objective_config.adv_estimator is 'grp'; did you mean grpo. Write one of none, bi_level_gae, .*, or module:name",
        ),
        ("none", "is 'none'"),
        ("our_parts:unfair", "our_parts declares no estimator unfair; it declares fair, base"),
        ("our_parts:other", "our_parts declares no estimator other"),
        ("our_parts:Heir", "our_parts declares no estimator Heir"),
        ("no_such_module:fair", "no_such_module cannot be loaded: ModuleNotFoundError: .* Write module:name"),
        ("no_such_file.py:fair", "no_such_file.py cannot be loaded: FileNotFoundError"),
        ("string:fair", r"string declares no estimator fair; decorate it with @estimator\('fair'\)"),
    ],
)
def test_what_is_not_there_is_answered_with_what_to_write(module: str, name: str, sentence: str) -> None:
    assert module == "our_parts"
    with pytest.raises(ConfigurationError, match=sentence):
        ESTIMATORS.find(name)


def test_a_name_is_checked_without_an_import(installed: Installed) -> None:
    installed(("fair", "no_such_package:fair"))
    ESTIMATORS.require_known("fair")
    ESTIMATORS.require_known("no_such_module:fair")
    ESTIMATORS.require_known("none")
    with pytest.raises(ConfigurationError, match="'grp'; did you mean grpo"):
        ESTIMATORS.require_known("grp")


def test_a_broken_file_is_named_with_its_error_and_can_be_mended(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n")
    with pytest.raises(ConfigurationError, match=r"broken\.py cannot be loaded: ZeroDivisionError"):
        ESTIMATORS.find(f"{path}:fair")
    path.write_text(PARTS)
    assert ESTIMATORS.find(f"{path}:fair").name == "fair"


@pytest.mark.parametrize(
    ("offered", "sentence"),
    [
        ((("fair", "one:fair"), ("fair", "other:fair")), r"estimator fair \(other:fair\), and one:fair is another"),
        (
            (("grpo", "one:grpo"),),
            r"grpo \(one:grpo\), and Millrace itself has one: uninstall it, or name it one:grpo",
        ),
    ],
)
def test_no_name_stands_for_two_parts(installed: Installed, offered: tuple[tuple[str, str], ...], sentence: str) -> None:
    installed(*offered)
    with pytest.raises(ConfigurationError, match=sentence):
        ESTIMATORS.find("no_matter")


def test_parameters_are_settings() -> None:
    def function(episodes: object, *, gamma: float = 1.0) -> float:
        return gamma

    def plain(episodes: object) -> float:
        return 0.0

    class Made:
        def __init__(self, lam: float = 0.5) -> None:
            self.lam = lam

    assert [settings_of(made) for made in (function, plain, Made)] == [("gamma",), (), ("lam",)]
    settings: dict[str, object] = {"gamma": 0.9, "lam": 0.8, "unknown": 1}
    assert configured(function, settings)(None) == 0.9
    assert configured(function, {})(None) == 1.0
    assert configured(plain, settings) is plain
    assert configured(Made, settings).lam == 0.8
    assert configured(Made, {}).lam == 0.5
