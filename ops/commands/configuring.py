"""The command that shows what a configuration comes to: config."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_overrides
from ops.commands.execution import interruptible
from ops.commands.listing import Commands

_EXAMPLE = """\
millrace config update_online policy_config.top_k=5 --changed
millrace config --run-dir runs/quickstart
millrace config --explain env_config.completion_threshold"""


def add_commands(commands: Commands) -> None:
    config = commands.add(
        "config", "print a configuration with the origin of every value, or explain a key", _config, example=_EXAMPLE
    )
    add = config.add_argument
    add("recipe", nargs="?", metavar="RECIPE", help="recipe or .yaml file to print (default: the recipe default)")
    add("--run-dir", type=Path, metavar="DIR", help="print the stored configuration of this run")
    add("--config", metavar="RECIPE", help="recipe or .yaml file, as other commands name it")
    add("--explain", default="", metavar="KEY", help="say what a key or group means, and its value")
    add("--changed", action="store_true", help="only what differs from the defaults")
    add("--json", action="store_true", help="JSON in place of YAML")
    add("--markdown", choices=("keys", "names"), help="print one of the tables in docs/")
    add_overrides(config)


@interruptible
async def _config(options: argparse.Namespace) -> int:
    from ops.commands.config import chosen_recipe, main, print_page

    if options.markdown:
        return print_page(options.markdown)
    words = [options.recipe] if options.recipe else []
    recipe, overrides = chosen_recipe([*words, *options.overrides], options.run_dir, options.config)
    text = "json" if options.json else "yaml"
    return main(recipe, overrides, explain=options.explain, changed=options.changed, as_text=text)
