"""The command `millrace`: reads arguments, and loads what a subcommand needs only when it is called."""

import argparse
import os
import re
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ops.argument_types import count, seconds
from ops.replay_arguments import add_replay_arguments, request_of

if TYPE_CHECKING:
    from ops.run_folder import RunFolder
    from schemas.config import Config

_ROLES = {
    "server": "run the run's own nats-server on this machine",
    "feeder": "admit tasks within the staleness bound",
    "browser": "play episodes in Chromium",
    "policy": "answer observations with the policy",
    "judge": "judge finished trajectories",
    "trainer": "train on judged trajectories and publish checkpoints",
}
_RUN_DIR = Path("runs/quickstart")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 78 a mistake that only a person can mend (its sentence is on stderr), 130 Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    command: Callable[[argparse.Namespace, list[str]], int] = options.run
    try:
        return command(options, given)
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="millrace", description="Reinforcement learning for visual web agents over NATS JetStream."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    quickstart = commands.add_parser("quickstart", help="the whole loop on this machine, with a model made on the spot")
    _run_dir(quickstart, "folder of the run")
    quickstart.add_argument("--seed", type=int, default=0, help="of tasks, model and sampling (default: %(default)s)")
    quickstart.add_argument("--family", choices=("click_button", "find_button"), default="click_button", help="pages to learn")
    quickstart.add_argument("--mode", choices=("async", "sync"), default="async", help="how episodes and training interleave")
    _overrides(quickstart)
    quickstart.set_defaults(run=_quickstart)
    for name, summary in _ROLES.items():
        _role_parser(commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."), name)
    doctor = commands.add_parser("doctor", help="what is installed, what is missing, and how to get it")
    doctor.set_defaults(run=_doctor)
    evaluate = commands.add_parser("evaluate", help="play the test split with one checkpoint, and say how well it does")
    _run_dir(evaluate, "folder of the run")
    evaluate.add_argument("--checkpoint", required=True, metavar="VERSION", help="a version that is kept, or a model's folder")
    _overrides(evaluate)
    evaluate.set_defaults(run=_evaluate)
    some = (
        "put some stored episodes into a run that it makes: to train offline, judge again, or consume at a pace; "
        "import copies all of them into a run that there is"
    )
    replay = commands.add_parser("replay", help=some, description=some)
    add_replay_arguments(replay)
    replay.set_defaults(run=_replay)
    audit = commands.add_parser("audit", help="count tasks, trajectories and judgements from the streams")
    _run_dir(audit, "folder of the run to count")
    audit.set_defaults(run=_audit)
    _chaos_parser(commands.add_parser("chaos", help="a fault drill: kill, stop and cut off the parts of a run, then count"))
    _watch_parser(commands.add_parser("watch", help="print a stream of the run as JSON lines, live or to its end"))
    _schema_parser(commands.add_parser("schema", help="print every message as JSON Schema, with subjects and streams"))
    _letters_parser(commands.add_parser("dead-letters", help="list, read and send again what no worker could handle"))
    _streams_parser(commands.add_parser("streams", help="create or change a run's streams, as its administrator"))
    _cluster_parser(commands.add_parser("cluster", help="write configuration, certificates and keys for NATS servers"))
    _archive_parsers(commands)
    return parser


def _chaos_parser(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, default=Path("runs/chaos"), metavar="DIR", help="new folder of the drill (default: %(default)s)")
    add("--episodes", type=count, default=5000, help="training episodes of the drill (default: %(default)s)")
    add("--servers", type=int, choices=(1, 3), default=1, help="nats-servers of the drill (default: %(default)s)")
    add("--browser", choices=("simulated", "playwright"), default="simulated", help="what plays (default: %(default)s)")
    add(
        "--limit", type=seconds, default=1800.0, metavar="S", help="seconds until the drill is given up (default: %(default)s)"
    )
    add("--set", nargs="+", default=(), metavar="KEY=VALUE", dest="overrides", help="configuration of the drill to override")
    add("--run-dir", type=Path, metavar="DIR", help="no drill: faults into the roles of this run that are on this machine")
    add("--duration", type=seconds, default=60.0, metavar="S", help="seconds of faults with --run-dir (default: %(default)s)")
    add("--seed", type=int, default=0, help="of tasks and faults (default: %(default)s)")
    add("--fault-interval", type=seconds, default=2.0, metavar="S", help="mean seconds between faults (default: %(default)s)")
    add("--kinds", nargs="+", default=(), metavar="KIND", help="kinds of fault (default: all that are possible)")
    parser.set_defaults(run=_chaos)


def _role_parser(parser: argparse.ArgumentParser, role: str) -> None:
    _joining(parser)
    _overrides(parser)
    parser.set_defaults(run=_role, role=role)


def _joining(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help=f"folder of the run to join (default: {_RUN_DIR})")
    parser.add_argument("--config", metavar="RECIPE", help="recipe or .yaml file; without it, the run's stored configuration")
    parser.add_argument("--name", help="this worker's name, unique in the run (default: role, host and process)")


def _streams_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help=f"folder of the run (default: {_RUN_DIR})")
    parser.add_argument("--config", metavar="RECIPE", help="recipe or .yaml file; without it, the run's stored configuration")
    _overrides(parser)
    parser.set_defaults(run=_streams)


def _cluster_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write; keep it private")
    parser.add_argument(
        "--server", action="append", required=True, metavar="HOST", help="name or address of one server; once for each"
    )
    parser.add_argument(
        "--run", action="append", metavar="NAME", help="run to make an account for; once for each", dest="runs"
    )
    parser.add_argument("--client-port", type=int, default=4222, help="(default: %(default)s)")
    parser.add_argument("--cluster-port", type=int, default=6222, help="(default: %(default)s)")
    parser.add_argument("--monitor-port", type=int, default=8222, help="on loopback only (default: %(default)s)")
    parser.add_argument("--sync-interval", help="between forced writes to disk, or always (default: bus_config.sync_interval)")
    parser.add_argument("--config", default="default", metavar="RECIPE", help="recipe or .yaml file of the runs")
    _overrides(parser)
    parser.set_defaults(run=_cluster)


def _archive_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    archive = commands.add_parser("archive", help="copy trajectories, judgements and pictures to files before they age out")
    _role_parser(archive, "archiver")
    end = archive.add_mutually_exclusive_group()
    end.add_argument("--once", action="store_true", help="archive what there is now, then stop")
    end.add_argument("--verify", type=Path, metavar="FOLDER", help="check every hash of an archive instead")
    archive.set_defaults(run=_archive)
    source = "folder of an archive or a run"
    whole = (
        "write all episodes of an archive or run into a run, as they were and in the old order; "
        "replay takes some of them, at a pace or for training, into a run that it makes"
    )
    imports = commands.add_parser("import", help=whole, description=whole)
    imports.add_argument("source", type=Path, metavar="SOURCE", help=source)
    _joining(imports)
    # Behind an option: argparse ends the list of positional ones at the first option behind SOURCE.
    imports.add_argument(
        "--set", nargs="+", default=(), metavar="KEY=VALUE", dest="overrides", help="configuration to override"
    )
    imports.add_argument("--no-judgements", action="store_true", help="leave judgements out, to have the run judge anew")
    imports.set_defaults(run=_import)
    export = commands.add_parser("export", help="write episodes as Parquet, Hugging Face dataset, ShareGPT or JSON Lines")
    export.add_argument("source", type=Path, metavar="SOURCE", help=source)
    export.add_argument("--format", choices=("parquet", "hf", "sharegpt", "jsonl"), required=True)
    export.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to be made")
    export.add_argument("--split", choices=("train", "eval"), help="only episodes of this split")
    export.add_argument("--min-reward", type=float, metavar="REWARD", help="only episodes that were worth so much")
    export.add_argument("--rubric", help="whose judgement counts, where there are several")
    export.add_argument("--leave-out-unchanged", action="store_true", help="leave out steps that did not change the picture")
    export.set_defaults(run=_export)


def _run_dir(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--run-dir", type=Path, default=_RUN_DIR, metavar="DIR", help=f"{what} (default: %(default)s)")


def _overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY=VALUE", help="configuration to override, as in policy_config.top_k=5"
    )


def _role(options: argparse.Namespace, given: list[str]) -> int:
    _guard(given)
    return _interruptible(lambda: _serve(options))


def _guard(given: list[str]) -> None:
    """Replaces this process by a guard that runs the same command, so that killing it leaves nothing behind."""
    from ops.guard import guard_command, is_guarded
    from ops.role_process import millrace_command, millrace_environment

    if not is_guarded():
        guarded = guard_command(millrace_command(given))
        os.execve(guarded[0], guarded, millrace_environment())  # noqa: S606


async def _serve(options: argparse.Namespace) -> int:
    from ops.logs import log_path, role_logs
    from schemas.ids import WorkerId, subject_token
    from schemas.messages import Role

    folder, config = _joined_run(options)
    worker = WorkerId(subject_token(options.name or _worker_name(options.role), what="worker name"))
    with role_logs(log_path(folder.logs, options.role, worker), run=config.bus_config.run, role=options.role, worker=worker):
        from ops.roles import run_role

        await run_role(Role(options.role), folder.path, config, worker)
    return 0


def _joined_run(options: argparse.Namespace) -> "tuple[RunFolder, Config]":
    """The run's folder and this worker's configuration: with `--config` a folder without a run becomes one."""
    from ops.configuration import load_config
    from ops.run_folder import RunFolder

    if options.config is None:
        folder = RunFolder((options.run_dir or _RUN_DIR).resolve())
        return folder, folder.load(options.overrides)
    config = load_config(options.config, options.overrides)
    folder = RunFolder((options.run_dir or Path(config.save_path)).resolve())
    config = replace(config, save_path=str(folder.path))
    if not folder.config.exists():
        folder.create(config)
    return folder, config


def _worker_name(role: str) -> str:
    host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:80]
    return f"{role}-{host}-{os.getpid()}"


def _quickstart(options: argparse.Namespace, _: list[str]) -> int:
    from ops.quickstart import main as quickstart

    return _interruptible(
        lambda: quickstart(
            run_dir=options.run_dir.resolve(),
            seed=options.seed,
            family=options.family,
            mode=options.mode,
            overrides=tuple(options.overrides),
        )
    )


def _doctor(_: argparse.Namespace, __: list[str]) -> int:
    from ops.doctor import main as doctor

    return doctor()


def _evaluate(options: argparse.Namespace, _: list[str]) -> int:
    from ops.evaluate import main as evaluate

    return _interruptible(lambda: evaluate(options.run_dir.resolve(), options.checkpoint, tuple(options.overrides)))


def _replay(options: argparse.Namespace, given: list[str]) -> int:
    _guard(given)
    from ops.replay import main
    from ops.replay_train import main as train

    if options.train is None:
        return _interruptible(lambda: main(request_of(options)))
    return _interruptible(lambda: train(request_of(options), num_passes=options.passes, overrides=tuple(options.train)))


def _audit(options: argparse.Namespace, _: list[str]) -> int:
    from ops.audit_command import main as audit

    return _interruptible(lambda: audit(options.run_dir.resolve()))


def _chaos(options: argparse.Namespace, given: list[str]) -> int:
    return _interruptible(lambda: _drill(options, " ".join(("millrace", *given))))


async def _drill(options: argparse.Namespace, command: str) -> int:
    from ops.chaos.faults import FaultKind

    kinds = FaultKind.named(options.kinds)
    if options.run_dir is not None:
        from ops.chaos.own_run_command import main as disturb

        return await disturb(
            options.run_dir.resolve(),
            kinds=kinds,
            seed=options.seed,
            interval_s=options.fault_interval,
            duration_s=options.duration,
        )
    from ops.chaos.command import drill_main
    from ops.chaos.settings import DrillSettings

    settings = DrillSettings(
        folder=options.out,
        num_episodes=options.episodes,
        num_servers=options.servers,
        seed=options.seed,
        fault_interval_s=options.fault_interval,
        kinds=kinds,
        browser=options.browser,
        limit_s=options.limit,
        overrides=tuple(options.overrides),
    )
    return await drill_main(settings, command=command)


def _watch_parser(parser: argparse.ArgumentParser) -> None:
    # Not from `ops.watch`, which loads the bus: the help of a command loads nothing.
    from ops.watch_arguments import add_arguments

    add_arguments(parser, _RUN_DIR)
    parser.set_defaults(run=_watch)


def _watch(options: argparse.Namespace, _: list[str]) -> int:
    from ops.watch import main as watch

    return _interruptible(lambda: watch(options, _RUN_DIR))


def _schema_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run", dest="run_name", default="millrace", metavar="NAME", help="the run that is named (default: %(default)s)"
    )
    parser.add_argument("--num-shards", type=int, default=1, help="of the run's EPISODES streams (default: %(default)s)")
    parser.set_defaults(run=_schema)


def _schema(options: argparse.Namespace, _: list[str]) -> int:
    from ops.message_schema import main as schema

    return schema(options.run_name, options.num_shards)


def _letters_parser(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="every letter, oldest first")
    listing.add_argument("--json", action="store_true", help="JSON lines in place of a table")
    show = actions.add_parser("show", help="one letter with its message")
    show.add_argument("number", type=int, metavar="N", help="as in the list")
    show.add_argument("--json", action="store_true", help="JSON in place of text")
    resend = actions.add_parser("resend", help="put the message back on its queue")
    resend.add_argument("number", type=int, nargs="?", metavar="N", help="as in the list")
    resend.add_argument("--all", action="store_true", help="every letter that was not sent again yet")
    resend.add_argument("--again", action="store_true", help="also when it was sent again before")
    for action in (listing, show, resend):
        _run_dir(action, "folder of the run")
        action.set_defaults(run=_letters)


def _letters(options: argparse.Namespace, _: list[str]) -> int:
    from ops.dead_letters_command import main as letters

    return _interruptible(lambda: letters(options))


def _streams(options: argparse.Namespace, _: list[str]) -> int:
    from ops.streams_command import main as streams

    async def body() -> int:
        import logging

        import structlog

        # What was done is in the table.
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
        folder, config = _joined_run(options)
        return await streams(folder, config)

    return _interruptible(body)


def _cluster(options: argparse.Namespace, _: list[str]) -> int:
    from ops.cluster_command import main as cluster

    async def body() -> int:
        from ops.configuration import load_config

        bus = load_config(options.config, options.overrides).bus_config
        return await cluster(
            options.out.resolve(),
            bus,
            hosts=tuple(options.server),
            runs=tuple(options.runs or ()),
            client_port=options.client_port,
            cluster_port=options.cluster_port,
            monitor_port=options.monitor_port,
            sync_interval=options.sync_interval,
        )

    return _interruptible(body)


def _archive(options: argparse.Namespace, given: list[str]) -> int:
    if not options.verify and not options.once:
        return _role(options, given)

    async def body() -> int:
        _require_archive()
        from ops.archive.archive_command import check, once

        if options.verify:
            return await check(options.verify.resolve())
        folder, config = _joined_run(options)
        return await once(folder, config, options.name or _worker_name(options.role))

    return _interruptible(body)


def _import(options: argparse.Namespace, _: list[str]) -> int:
    async def body() -> int:
        _require_archive()
        from ops.archive.import_command import main as import_

        folder, config = _joined_run(options)
        return await import_(options.source.resolve(), folder, config, judgements=not options.no_judgements)

    return _interruptible(body)


def _export(options: argparse.Namespace, _: list[str]) -> int:
    async def body() -> int:
        _require_archive()
        from ops.archive.export_command import main as export
        from ops.archive.exports.played import Selection
        from schemas.messages import Split

        split = Split(options.split) if options.split else None
        return await export(
            options.source.resolve(),
            options.out.resolve(),
            format_name=options.format,
            selection=Selection(split=split, min_reward=options.min_reward, rubric=options.rubric),
            leave_out_unchanged=options.leave_out_unchanged,
        )

    return _interruptible(body)


def _require_archive() -> None:
    from ops.extras import require_extra

    require_extra("pyarrow", "archive")


def _interruptible(body: Callable[[], Awaitable[int]]) -> int:
    from ops.interruptible import run

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
