"""Lists the sites that are left out of training, adds one, or lets one in again."""

import argparse
import re
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from bus.blocklist import Blocklist, block, end_of, read_blocklist
from bus.ports import Bus
from bus.server_time import server_now
from bus.subjects import Subjects
from ops.commands.arguments import above_zero, add_run_dir
from ops.commands.execution import interruptible
from ops.commands.listing import add_command
from ops.console.json_lines import json_lines
from ops.console.terminal import Console
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.errors import ConfigurationError
from schemas.messages import SiteBlock
from schemas.site import site_of
from schemas.text import visible

EXAMPLE = """\
millrace blocklist --run-dir runs/mine
millrace blocklist add example.org --hours 48 --run-dir runs/mine
millrace blocklist remove https://www.example.org/ --run-dir runs/mine"""
_ADDED, _REMOVED = "added by hand", "removed by hand"
_LONGEST = 253
_IN_BRACKETS = re.compile(r"\[(.*)\]:[0-9]{1,5}")
_SITE = re.compile(r"(?!.*\.\.)[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?(:[0-9]{1,5})?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_dir(parser, positional=False)
    parser.add_argument("--all", action="store_true", help="also those that are over or were removed")
    parser.add_argument("--json", action="store_true", help="JSON lines in place of a table")
    actions = parser.add_subparsers(dest="action", metavar="[add | remove]", help="change the list")
    add = add_command(actions, "add", "leave a site out of training for a while")
    add.add_argument("--hours", type=above_zero, metavar="H", help="how long (default: judge_config.blocklist_hours)")
    add.add_argument("--reason", metavar="TEXT", help="for whoever reads the list")
    remove = add_command(actions, "remove", "train on a site again")
    for action in (add, remove):
        action.add_argument("site", metavar="SITE", help="host, address of a page, or name of a suite")
        # Without a default of its own: that would replace what was said before the action.
        action.add_argument("--run-dir", type=Path, metavar="DIR", default=argparse.SUPPRESS, help="folder of the run")


@interruptible
async def run(options: argparse.Namespace) -> int:
    """Reads with the monitor's key; whoever changes the list needs the administrator's."""
    if options.action is not None and (options.all or options.json):
        raise ConfigurationError(f"--all and --json belong to the list: leave them out of {options.action}")
    folder = RunFolder(options.run_dir.resolve())
    config = folder.load()
    subjects = subjects_of(config)
    role = "monitor" if options.action is None else "admin"
    site = None if options.action is None else named_site(options.site)
    async with served(folder, config), join(folder, config, role=role, name="blocklist") as bus:
        if site is None:
            await _list(await read_blocklist(bus, subjects), options, now_s=await server_now(bus, subjects.blocklist))
        elif options.action == "add":
            hours = options.hours or config.judge_config.blocklist_hours
            await _add(bus, subjects, site, hours=hours, reason=options.reason or _ADDED)
        else:
            await _remove(bus, subjects, site)
    return 0


def named_site(text: str) -> str:
    """The site that a person means by an address, a host or a suite's name.

    Raises:
        ConfigurationError: it is none of these.
    """
    site = site_of(text)
    if (_SITE.fullmatch(site) and len(site) <= _LONGEST) or _is_address(site):
        return site
    raise ConfigurationError(
        f"{text!r} is no site: write a host such as example.org, the address of a page, or a suite's name"
    )


def _is_address(site: str) -> bool:
    try:
        return bool(ip_address(_IN_BRACKETS.sub(r"\1", site)))
    except ValueError:
        return False


async def _list(found: Blocklist, options: argparse.Namespace, *, now_s: float) -> None:
    entries = found.entries if options.all else found.blocked(now_s)
    shown = sorted(entries.values(), key=lambda entry: (entry.until, entry.site))
    if options.json:
        async with json_lines() as lines:
            for entry in shown:
                await lines.write(_fields(entry, now_s))
        return
    Console().print(blocklist_table(shown, now_s) if shown else "no site is blocked")


def blocklist_table(entries: list[SiteBlock], now_s: float) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("site", "until (UTC)", "in", "reason", "episode"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("until (UTC)", "in"))
    for entry in entries:
        cells = (entry.site, f"{end_of(entry):%Y-%m-%d %H:%M}", time_left(entry, now_s), entry.reason, entry.episode)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def _fields(entry: SiteBlock, now_s: float) -> dict[str, Any]:
    return {
        "site": entry.site,
        "until": end_of(entry),
        "blocked": entry.until > now_s,
        "seconds_left": round(max(0.0, end_of(entry).timestamp() - now_s)),
        "reason": entry.reason,
        "episode": entry.episode or None,
        "since": datetime.fromtimestamp(entry.at, UTC),
    }


def time_left(entry: SiteBlock, now_s: float) -> str:
    """Rounded up to minutes; `over` for a block that is."""
    minutes = -int(-(end_of(entry).timestamp() - now_s) // 60)
    hours, minutes = divmod(max(0, minutes), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else "over"


async def _add(bus: Bus, subjects: Subjects, site: str, *, hours: float, reason: str) -> None:
    if hours <= 0:
        raise ConfigurationError("judge_config.blocklist_hours is 0 in this run: say for how long with --hours")
    entry = await block(bus, subjects, site, hours=hours, reason=reason)
    print(f"{site} is left out of training for {hours:g} hours, until {end_of(entry):%Y-%m-%d %H:%M:%S} UTC")


async def _remove(bus: Bus, subjects: Subjects, site: str) -> None:
    now_s = await server_now(bus, subjects.blocklist)
    if site not in (await read_blocklist(bus, subjects)).blocked(now_s):
        raise ConfigurationError(f"{site} is not blocked: `millrace blocklist` lists the sites that are")
    await block(bus, subjects, site, hours=0.0, reason=_REMOVED)
    print(f"{site} is trained on again")
