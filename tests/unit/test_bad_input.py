"""Every command refuses what a person may give it by mistake: in one sentence, by its exit code, with nothing changed.

The commands are read from the argument parser: a new one, or a new path of one, is in the table or the test fails.
"""

import argparse
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ops import cli
from ops.commands.listing import parser_of
from ops.processes.guard import MARKER
from tests.support.texts.bad_input import KINDS, box, state

_USAGE, _MISTAKE = 2, 78
_LINES = (Path(__file__).parents[1] / "support" / "texts" / "bad_input_lines.txt").read_text().splitlines()
"""Commands; a word in capitals stands for every mistake of its kind."""
_TAKES_NOTHING = {"schema", "doctor", "completion"}
"""No path, key or model."""


@dataclass(frozen=True)
class Leaf:
    """A command that does something, or an action of one."""

    name: str
    arguments: tuple[argparse.Action, ...]


def _leaves(parser: argparse.ArgumentParser, name: str) -> Iterator[Leaf]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not any(action.required for action in below):
        yield Leaf(name, tuple(action for action in parser._actions if action not in below))
    for action in below:
        for word, leaf in action.choices.items():
            yield from _leaves(leaf, f"{name} {word}")


def _all_leaves() -> Iterator[Leaf]:
    for command in (command for commands in cli.COMMANDS.values() for command in commands):
        parser = parser_of(cli.COMMANDS, command.name)
        [named] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        yield from _leaves(named.choices[command.name], command.name)


LEAVES = tuple(_all_leaves())


def _lines(leaf: Leaf) -> list[str]:
    """Those of the command, and of none of its actions."""
    longer = [f"{each.name} " for each in LEAVES if each.name.startswith(f"{leaf.name} ")]
    return [line for line in _LINES if line.startswith(f"{leaf.name} ") and not line.startswith(tuple(longer))]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_every_path_of_every_command_is_in_the_table(leaf: Leaf) -> None:
    lines = _lines(leaf)
    assert bool(lines) is (leaf.name not in _TAKES_NOTHING), "write its lines into bad_input_lines.txt"
    words = {word for line in lines for word in shlex.split(line)}
    paths = [action for action in leaf.arguments if action.type is Path and action.option_strings]
    assert [path.option_strings[-1] for path in paths if not words & set(path.option_strings)] == []


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("box")
    with box(folder) as port:
        yield folder, port


@dataclass
class Typist:
    """Types commands in the box; collects what is wrong with what became of them."""

    folder: Path
    port: str
    capture: pytest.CaptureFixture[str]

    def complaints(self, line: str) -> list[str]:
        words = shlex.split(line)
        kinds = {word.rpartition("=")[2] for word in words} & KINDS.keys()
        if not kinds:
            return self.types(words)
        [kind] = kinds
        return [
            complaint
            for mistake in (KINDS[kind] or (self.port,))
            for complaint in self.types([_put(word, kind, mistake) for word in words])
        ]

    def types(self, argv: list[str]) -> list[str]:
        before = state(self.folder)
        try:
            code = cli.main(argv)
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = [line for line in self.capture.readouterr().err.splitlines() if line.strip()]
        now = state(self.folder)
        wrong = [
            *([] if code in (_USAGE, _MISTAKE) else [f"exit code {code}"]),
            *([] if code != _MISTAKE or (len(said) == 1 and said[0].startswith("millrace: ")) else ["no sentence"]),
            *(["a traceback"] if any("Traceback" in line for line in said) else []),
            *(f"changed {name}" for name in sorted({*before, *now}) if before.get(name) != now.get(name)),
        ]
        return [f"{shlex.join(argv)}: {', '.join(wrong)}: {' / '.join(said)[-400:]}"] if wrong else []


def _put(word: str, kind: str, mistake: str) -> str:
    return f"{word.removesuffix(kind)}{mistake}" if word.rpartition("=")[2] == kind else word


@pytest.fixture
def typist(place: tuple[Path, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Typist:
    monkeypatch.chdir(place[0])
    monkeypatch.setenv(MARKER, str(os.getppid()))  # a role would replace this process by a guard of it
    return Typist(*place, capsys)


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_a_mistake_is_told_in_a_sentence_and_changes_nothing(leaf: Leaf, typist: Typist) -> None:
    assert [complaint for line in _lines(leaf) for complaint in typist.complaints(line)] == []


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_a_word_where_a_number_or_one_of_some_words_goes_is_wrong_usage(leaf: Leaf, typist: Typist) -> None:
    picky = [
        action for action in leaf.arguments if action.option_strings and (action.choices or action.type not in (None, Path))
    ]
    for action in picky:
        with pytest.raises(SystemExit) as ended:
            cli.main([*leaf.name.split(), action.option_strings[-1], "nonsense"])
        assert ended.value.code == _USAGE
        assert f"argument {'/'.join(action.option_strings)}: " in typist.capture.readouterr().err
