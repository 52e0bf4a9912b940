"""The commands that show a run to people: monitor, view, report; and where those with pages listen."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.arguments import RUN_DIR, add_joining, port
from ops.commands.execution import interruptible
from ops.commands.listing import Commands

if TYPE_CHECKING:
    from ops.web.entrance import Entrance

_PORT = 8400
_MONITOR_EXAMPLE = """\
millrace monitor --run-dir runs/mine
millrace monitor --run-dir runs/mine --web --open
millrace monitor --run-dir runs/mine --once --json | jq .sections.alerts
millrace monitor --run-dir runs/mine --prometheus 9464"""
_VIEW_EXAMPLE = """\
millrace view runs/mine --open
millrace view runs/mine/archive --port 9000"""
_REPORT_EXAMPLE = """\
millrace report runs/mine
millrace report runs/mine/archive --rubric rubric_v1 --out out/report"""


def add_commands(commands: Commands) -> None:
    _add_view_arguments(
        commands.add("view", "look at finished episodes, step by step, in a browser", _view, example=_VIEW_EXAMPLE)
    )
    _add_report_arguments(
        commands.add("report", "say what a run or an archive comes to, as tables and a page", _report, example=_REPORT_EXAMPLE)
    )
    _add_monitor_arguments(
        commands.add("monitor", "show workers, queues, episodes, curve and alerts, live", _monitor, example=_MONITOR_EXAMPLE)
    )


def _add_view_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", type=Path, nargs="?", default=RUN_DIR, metavar="SOURCE", help="folder of a run or an archive"
    )
    _add_page(parser)
    _add_entrance(parser)


def _add_report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="SOURCE", help="folder of a run or an archive")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for page, figures and charts (default: SOURCE/report)")
    parser.add_argument("--rubric", help="whose verdicts count (default: the run's own)")
    parser.add_argument("--split", choices=("train", "eval"), help="only episodes of this split")
    parser.add_argument(
        "--since", metavar="TIME", help="only episodes that ended since then (2026-01-31T12:00) or so long ago (2h)"
    )
    parser.add_argument("--until", metavar="TIME", help="only episodes that ended before")


def _add_monitor_arguments(parser: argparse.ArgumentParser) -> None:
    add_joining(parser)
    parser.add_argument("--once", action="store_true", help="print how it stands now, and end")
    parser.add_argument("--json", action="store_true", help="JSON lines: everything first, then what changed")
    parser.add_argument(
        "--prometheus", type=port, metavar="PORT", help="serve metrics for Prometheus at /metrics on this port as well"
    )
    page = parser.add_argument_group("as a page in a browser, in place of the terminal")
    page.add_argument("--web", action="store_true", help="serve the page, finished episodes and /metrics")
    _add_page(page)
    _add_entrance(parser)


def _add_page(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--port", type=port, metavar="PORT", help=f"to listen on (default: the first free one from {_PORT})")
    parser.add_argument("--open", action="store_true", help="open the page in this machine's browser")


def _add_entrance(parser: argparse.ArgumentParser) -> None:
    """What `_entrance` reads besides the port."""
    far = parser.add_argument_group("from other machines", "all of these, and a token")
    far.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="to listen on (default: %(default)s)")
    far.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate of this machine, PEM")
    far.add_argument("--tls-key", type=Path, metavar="FILE", help="its key, PEM")
    far.add_argument("--token-file", type=Path, metavar="FILE", help="mode 600 (default: $MILLRACE_WEB_TOKEN)")
    far.add_argument(
        "--name", action="append", default=[], metavar="NAME", help="by which this machine is reached; may be repeated"
    )


def _entrance(options: argparse.Namespace, at: int | None) -> "Entrance":
    """`at`: the port that was asked for; None: the first free one. Raises `ConfigurationError`."""
    from ops.run.extras import require_extra

    require_extra("uvicorn", "monitor")
    from ops.web.entrance import entrance
    from ops.web.serving import Listening

    listening = Listening(
        host=options.host,
        port=at or _PORT,
        exact=at is not None,
        certificate=options.tls_cert,
        key=options.tls_key,
        name=next(iter(options.name), ""),
    )
    return entrance(listening, token_file=options.token_file, names=options.name, opens_browser=options.open)


@interruptible
async def _view(options: argparse.Namespace) -> int:
    entrance = _entrance(options, options.port)
    from ops.commands.view import main

    return await main(options.source.resolve(), entrance)


@interruptible
async def _report(options: argparse.Namespace) -> int:
    from ops.run.extras import require_extra

    require_extra("pyarrow", "archive")
    from ops.analysis.report.selection import Selection, moment_s
    from ops.commands.report import main
    from schemas.messages import Split

    selection = Selection(
        split=Split(options.split) if options.split else None,
        since_s=moment_s("--since", options.since),
        until_s=moment_s("--until", options.until),
    )
    source = options.source.resolve()
    out = options.out.resolve() if options.out else source / "report"
    return await main(source, out, rubric=options.rubric, selection=selection)


@interruptible
async def _monitor(options: argparse.Namespace) -> int:
    from ops.commands.monitor import main
    from schemas.errors import ConfigurationError

    if options.web and (options.once or options.json or options.prometheus):
        raise ConfigurationError(
            "--web is a page in place of --once, --json and --prometheus, and serves /metrics itself: leave these out"
        )
    if not options.web and (options.port or options.open):
        raise ConfigurationError("--port and --open are of the page: add --web; for metrics alone write --prometheus PORT")
    if options.web:
        return await main(options, _entrance(options, options.port))
    return await main(options, _entrance(options, options.prometheus) if options.prometheus else None)
