"""Arguments of commands that read other people's conversations."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.arguments import seed
from ops.commands.execution import planned_run, tell_idle_keys
from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from ops.run.folder import RunFolder
    from ops.sft.importing import ConversationRequest
    from schemas.config import Config

FORMATS = ("openai", "sharegpt", "llamafactory", "huggingface")


def add_conversations(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--from", dest="form", choices=FORMATS, help="read a file or folder of conversations in this form")
    add("--dataset", metavar="NAME", help="of llamafactory: the one in dataset_info.json (default: all)")
    add("--screenshots", type=seed, metavar="N", help="latest screenshots that a prompt keeps (default: all)")
    add("--skip-bad", action="store_true", help="leave out, and list, records that cannot be read")


def refuse_conversation_arguments(options: argparse.Namespace) -> None:
    """Raises `ConfigurationError` where one of them is given without a form."""
    names = ("dataset", "screenshots", "skip_bad")
    given = [f"--{name.replace('_', '-')}" for name in names if not _is_left_out(getattr(options, name))]
    if given:
        raise ConfigurationError(f"{' and '.join(given)} of conversations: write --from with {', '.join(FORMATS)} too")


def _is_left_out(value: object) -> bool:
    return value is None or value is False


def conversation_request(options: argparse.Namespace, path: Path) -> "ConversationRequest":
    from ops.sft.formats import ReadingOptions
    from ops.sft.importing import ConversationRequest

    if options.dataset and options.form != "llamafactory":
        raise ConfigurationError(f"--dataset names one of dataset_info.json, and --from is {options.form}: leave it out")
    return ConversationRequest(
        path=path,
        form=options.form,
        options=ReadingOptions(dataset=options.dataset or ""),
        num_screenshots=options.screenshots,
        skip_bad=options.skip_bad,
    )


async def conversation_run(options: argparse.Namespace) -> "tuple[RunFolder, Config]":
    """The run that conversations go into, or will, and its configuration. Nothing is written.

    Raises:
        ConfigurationError: its model cannot be had, or it is a run for another model.
    """
    from anyio.to_thread import run_sync

    from ops.sft.agreement import agreed

    folder, config = planned_run(options)
    if not folder.config.exists():
        tell_idle_keys(options)
    return folder, await run_sync(agreed, folder, config)
