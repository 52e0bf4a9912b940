"""Completes a command line where a shell asks for it: commands and options by argcomplete, and the configuration's keys.

eval "$(millrace completion bash)"
"""

import os
from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterable
from typing import Final, Literal, get_args

Shell = Literal["bash", "zsh", "fish", "tcsh"]
SHELLS: Final[tuple[Shell, ...]] = get_args(Shell)


def is_asked() -> bool:
    """Whether a shell has started this process to learn how a line may go on."""
    return "_ARGCOMPLETE" in os.environ


def typed() -> list[str]:
    """The words before the one that is completed, without the program's name."""
    return os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])].split(" ")[1:-1]


def completed_by(action: Action, completer: Callable[..., Iterable[str]]) -> None:
    """How an argument's value may go on; it is as before where nobody asks."""
    action.completer = completer  # type: ignore[attr-defined]


def answer(parser: ArgumentParser) -> None:
    """Tells the shell, and ends the process."""
    from argcomplete import autocomplete

    autocomplete(parser, always_complete_options=False)


def recipes_and_files(prefix: str, **_: object) -> list[str]:
    from argcomplete.completers import FilesCompleter

    from ops.config.recipes import recipe_names

    return [*recipe_names(), *FilesCompleter(("yaml",))(prefix)]


def keys(**_: object) -> tuple[str, ...]:
    """Keys and groups of the configuration."""
    from ops.config.key_docs import key_docs

    return tuple(key_docs())


def overrides(prefix: str, **_: object) -> list[str]:
    """Keys with their equals sign; behind it what can be chosen. A folder of a run may stand among them."""
    from argcomplete.completers import DirectoriesCompleter

    from ops.config.key_docs import key_docs
    from ops.config.recipes import objective_names
    from ops.config.schema import known_keys

    key, is_value, _value = prefix.partition("=")
    if not is_value:
        return [*(f"{known}=" for known in known_keys()), "objective=", *DirectoriesCompleter()(prefix)]
    if key == "objective":
        return [f"objective={name}" for name in objective_names()]
    return [f"{key}={choice}" for choice in key_docs()[key].choices] if key in key_docs() else []


def shell_code(shell: Shell) -> str:
    from argcomplete.shell_integration import shellcode

    return shellcode(["millrace"], shell="bash" if shell == "zsh" else shell)
