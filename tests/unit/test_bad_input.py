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
_LINES: dict[str, tuple[str, ...]] = {
    "new": ("FOLDER", "foreign"),
    "quickstart": ("--run-dir NEW", "--run-dir new KEY"),
    "run": (
        "CONFIG --run-dir new",
        "--run-dir RUN",
        "simulation --run-dir NEW",
        "simulation --run-dir new KEY",
        "update_online --run-dir new policy_config.base_model=MODEL",
    ),
    "plan": ("CONFIG", "--run-dir RUN", "update_online KEY", "update_online policy_config.base_model=MODEL"),
    "gpu-check": ("MODEL --out new", "--random tiny --only training --out FOLDER"),
    "eval": (
        "0 --run-dir RUN",
        "MODEL --config default --out new",
        "CONFIG badmodel",
        "0 --run-dir good KEY",
        "--compare FILE file",
        "--compare RUN",
        "badmodel --config CONFIG",
        "--api m --base-url https://h/v1 --tasks FILE",
        "0 --run-dir good --trained-on FILE",
        "0 --run-dir good --out FOLDER",
        "0 --run-dir good --submission FOLDER",
    ),
    "sft": (
        "FILE --from openai --run-dir new",
        "torn.jsonl --from openai --run-dir NEW",
        "--run-dir RUN",
        "torn.jsonl --from openai --run-dir new --config CONFIG",
        "torn.jsonl --from openai --run-dir new KEY",
    ),
    "replay": ("SOURCE --train", "SOURCE --into new", "good --train KEY"),
    "chaos": ("--kinds kill --out FOLDER", "--kinds kill --out new --set KEY", "--run-dir RUN"),
    **dict.fromkeys(
        ("server", "feeder", "browser", "policy", "judge", "trainer"),
        (
            "--run-dir RUN",
            "--config CONFIG --run-dir new",
            "--config default --run-dir NEW",
            "--config default --run-dir new KEY",
            "--config default --run-dir new --name WORKER",
        ),
    ),
    "config": ("CONFIG", "--config CONFIG", "--run-dir RUN", "default KEY", "--explain WORD"),
    "config import": ("FILE --from webgym --out new.yaml", "wrong.yaml --from webgym --out OUT"),
    "node": ("--file NODES --name a",),
    "launch": (
        "--file NODES --with ssh",
        "--file NODES --with systemd --out new",
        "--file none --with slurm --out FOLDER",
        "--file none --with ssh --cluster RUN",
    ),
    "drain": (
        "--all --run-dir RUN",
        "--all --config CONFIG --run-dir new",
        "--all --file NODES",
        "--all --file none --cluster RUN",
        "--all --run-dir good KEY",
    ),
    "restart": (
        "--all --run-dir RUN",
        "--all --config CONFIG --run-dir new",
        "--all --file NODES",
        "--all --file none --cluster RUN",
        "--all --run-dir good KEY",
    ),
    "view": (
        "SOURCE",
        "--run-dir SOURCE",
        "good --tls-cert PEM --tls-key file",
        "good --tls-cert file --tls-key PEM",
        "good --token-file FILE",
        "good --port PORT",
    ),
    "report": ("SOURCE", "--run-dir SOURCE", "good --out FOLDER"),
    "monitor": (
        "--run-dir RUN",
        "--once --run-dir RUN",
        "--once --config CONFIG --run-dir new",
        "--run-dir good KEY",
        "--run-dir good --web --tls-cert PEM --tls-key file",
        "--run-dir good --web --tls-cert file --tls-key PEM",
        "--run-dir good --web --token-file FILE",
        "--run-dir good --web --port PORT",
        "--run-dir good --prometheus PORT",
    ),
    "audit": ("RUN", "--run-dir RUN"),
    "watch": (
        "judgements RUN",
        "judgements --run-dir RUN",
        "judgements --run-dir new --config CONFIG",
        "observations --run-dir good --screenshots FOLDER",
    ),
    "schema": (),
    **{f"dead-letters {each}": ("RUN", "--run-dir RUN") for each in ("list", "show 1", "resend 1")},
    "blocklist": ("--run-dir RUN",),
    "blocklist add": ("a.example --run-dir RUN",),
    "blocklist remove": ("a.example --run-dir RUN",),
    "rejudge": ("RUN", "--run-dir RUN", "good KEY"),
    "calibrate": (
        "SOURCE --rubric q --against r",
        "--run-dir SOURCE --rubric q --against r",
        "good --rubric q --labels FILE",
        "good --template file/below",
        "good --rubric q --against r --json file/below/new.json",
    ),
    "archive": (
        "--once --run-dir RUN",
        "--once --config CONFIG --run-dir new",
        "--verify SOURCE",
        "--once --run-dir good KEY",
    ),
    "import": (
        "SOURCE --run-dir good",
        "rotten --run-dir RUN",
        "FILE --from openai --run-dir good",
        "rotten --config CONFIG --run-dir new",
        "rotten --run-dir good KEY",
    ),
    "export": (
        "SOURCE --format hf --out new",
        "--run-dir SOURCE --format hf --out new",
        "good --format WORD --out new",
        "rotten --format hf --out FOLDER",
    ),
    "export-model": ("RUN --out new", "--run-dir RUN --out new", "good --out FOLDER"),
    "tasks prepare": ("webvoyager FILE --out new.jsonl", "webgym file --out OUT"),
    "tasks check": ("FILE",),
    **{f"tasks {suite}": ("--out OUT",) for suite in ("miniwob", "shop", "frozen-lake", "sokoban")},
    "site": ("WORD", "shop --port PORT"),
    "doctor": (),
    "streams": ("--run-dir RUN", "--config CONFIG --run-dir new", "--config default --run-dir new KEY"),
    "cluster": (
        "--server h --out FOLDER",
        "--server h --out new --config CONFIG",
        "--server h --out new --config default KEY",
    ),
}
"""What follows a command; a word in capitals stands for every mistake of its kind."""


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
    """Of the table, without the command; a positional word may stand behind the command's name there."""
    return [
        f"{named.removeprefix(leaf.name)} {line}".strip()
        for named, lines in _LINES.items()
        for line in lines
        if named == leaf.name or (named.rpartition(" ")[0] == leaf.name and named.rpartition(" ")[2].isdecimal())
    ]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_every_path_of_every_command_is_in_the_table(leaf: Leaf) -> None:
    lines = _lines(leaf)
    assert lines or _LINES.get(leaf.name) == (), "write its lines into _LINES"
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

    def complaints(self, leaf: Leaf, line: str) -> list[str]:
        words = shlex.split(line)
        kinds = [kind for kind in KINDS if any(word.rpartition("=")[2] == kind for word in words)]
        if not kinds:
            return self.types([*leaf.name.split(), *words])
        [kind] = kinds
        return [
            complaint
            for mistake in (KINDS[kind] or (self.port,))
            for complaint in self.types([*leaf.name.split(), *(_put(word, kind, mistake) for word in words)])
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
    assert [complaint for line in _lines(leaf) for complaint in typist.complaints(leaf, line)] == []


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
