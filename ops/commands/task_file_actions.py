"""What `millrace tasks` does with task files of the field: prepares and checks them."""

import argparse
from pathlib import Path

from ops.commands.arguments import count, seed
from ops.commands.listing import add_command
from ops.tasks.benchmarks import NAMES

PREPARE, CHECK = "prepare", "check"
_PREPARE_EXAMPLE = """\
millrace tasks prepare webgym train.jsonl test.jsonl --out webgym.jsonl
millrace tasks prepare webgym train.jsonl --difficulty hard --sample 2000 \\
    --out hard.jsonl
millrace tasks prepare webarena-verified hard.parquet --out hard.jsonl \\
    --address SHOPPING=http://localhost:7770"""
_CHECK_EXAMPLE = "millrace tasks check tasks.jsonl"


def add_prepare(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_command(actions, PREPARE, "make a task file of a published benchmark's files", example=_PREPARE_EXAMPLE)
    add = parser.add_argument
    add("benchmark", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    add("files", type=Path, nargs="+", metavar="FILE", help="as it was downloaded: .jsonl, .json, .csv, .tsv or .parquet")
    add("--out", type=Path, required=True, metavar="FILE", help="task file to write")
    add("--split", default="", metavar="NAMES", help="only tasks of these splits, with commas between them")
    add("--site", default="", metavar="HOSTS", help="only tasks on these sites")
    add("--difficulty", default="", metavar="WHICH", help="only such tasks: easy, medium, hard, unknown, numbers, as in 4-6")
    add("--distribution", default="", metavar="NAMES", help="only tasks of these distributions: id, ood")
    add("--sample", type=count, metavar="N", help="so many of the selected tasks, drawn at random")
    add("--seed", type=seed, default=0, metavar="N", help="which are drawn (default: %(default)s)")
    add("--skip-bad", action="store_true", help="leave out tasks that cannot be prepared (default: write nothing)")
    add("--website", default="", metavar="URL", help="where tasks start that name no page")
    add(
        "--address",
        action="append",
        default=[],
        metavar="SITE=URL",
        help="where a site is that stands as __SITE__; may be given several times",
    )


def add_check(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_command(actions, CHECK, "say all that is wrong with a task file", example=_CHECK_EXAMPLE)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="task file")
    add("--suites", default="", metavar="NAMES", help="suites of your own, with commas between them, as in ./mine.py:maze")
    add("--strict", action="store_true", help="take warnings for errors")


async def prepare_file(options: argparse.Namespace) -> int:
    """Raises `ConfigurationError` with all that is wrong; then nothing is written."""
    from ops.console.terminal import Console
    from ops.tasks.benchmarks import benchmark
    from ops.tasks.display import show_prepared
    from ops.tasks.preparing import Request, prepare
    from ops.tasks.selection import selection_of

    request = Request(
        benchmark=benchmark(options.benchmark),
        files=tuple(options.files),
        out=options.out.resolve(),
        selection=selection_of(
            splits=options.split,
            sites=options.site,
            difficulties=options.difficulty,
            distributions=options.distribution,
        ),
        sample=options.sample,
        seed=options.seed,
        skip_bad=options.skip_bad,
        website=_web(options.website),
        addresses=dict(_address(word) for word in options.address),
    )
    show_prepared(await prepare(request), request, Console())
    return 0


def _web(url: str) -> str:
    """Raises `ConfigurationError`."""
    from browser_workers.actions import web_address
    from schemas.errors import ConfigurationError

    if url and not web_address(url):
        raise ConfigurationError(f"{url} is no http(s) address: write one such as https://example.org")
    return web_address(url)


def _address(word: str) -> tuple[str, str]:
    """Raises `ConfigurationError`."""
    from schemas.errors import ConfigurationError

    site, equals, url = word.partition("=")
    if not equals or not site or not url:
        raise ConfigurationError(f"--address {word} names no site: write one such as SHOPPING=http://localhost:7770")
    return site.strip("_").upper(), _web(url).rstrip("/")


async def check_file(options: argparse.Namespace) -> int:
    """Returns 0 when the file can be played, 1 when something is wrong with it."""
    from ops.console.terminal import Console
    from ops.tasks.checking import check
    from ops.tasks.display import show_checked

    checked = await check(options.file, [name.strip() for name in options.suites.split(",") if name.strip()])
    show_checked(checked, Console())
    return 1 if checked.errors or (options.strict and checked.warnings()) else 0
