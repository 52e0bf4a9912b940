"""The commands that copy episodes and models to files and back: archive, import, export, export-model."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_joining, add_worker, seed
from ops.commands.execution import interruptible, joined_run, worker_name
from ops.commands.listing import Commands
from ops.commands.roles import serve

_ARCHIVE_EXAMPLE = """\
millrace archive --run-dir runs/mine
millrace archive --run-dir runs/mine --once
millrace archive --verify runs/mine/archive"""


def add_commands(commands: Commands) -> None:
    archive = commands.add(
        "archive",
        "copy episodes and pictures to files before they age out",
        _archive,
        example=_ARCHIVE_EXAMPLE,
    )
    add_worker(archive)
    end = archive.add_mutually_exclusive_group()
    end.add_argument("--once", action="store_true", help="archive what there is now, then stop")
    end.add_argument("--verify", type=Path, metavar="FOLDER", help="check every hash of an archive instead")
    archive.set_defaults(role="archiver")
    imports = commands.add(
        "import",
        "write all episodes of an archive or run into another run",
        _import,
        example="millrace import runs/mine/archive --run-dir runs/second",
    )
    _add_source(imports)
    add_joining(imports)
    imports.add_argument("--no-judgements", action="store_true", help="leave judgements out, to have the run judge anew")
    export = commands.add(
        "export",
        "write episodes for other tools, as Parquet or JSON",
        _export,
        example="millrace export runs/mine/archive --format hf --out out/steps --min-reward 0.5",
    )
    _add_source(export)
    export.add_argument(
        "--format",
        choices=("parquet", "hf", "sharegpt", "jsonl"),
        required=True,
        help="hf: a dataset folder of Hugging Face; sharegpt: conversations with pictures; jsonl: a line an episode",
    )
    export.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to be made")
    export.add_argument("--split", choices=("train", "eval"), help="only episodes of this split")
    export.add_argument("--min-reward", type=float, metavar="REWARD", help="only episodes that were worth so much")
    export.add_argument("--rubric", help="whose judgement counts, where there are several")
    export.add_argument("--leave-out-unchanged", action="store_true", help="leave out steps that did not change the picture")
    model = commands.add(
        "export-model",
        "write a version of a run as a model folder for transformers and vLLM",
        _export_model,
        example="millrace export-model runs/mine --out models/mine --version 40",
    )
    model.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="folder of the run")
    model.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder to be made")
    model.add_argument(
        "--version", type=seed, metavar="N", help="a version that is kept; 0: the first model (default: newest)"
    )


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="SOURCE", help="folder of an archive or a run")


def _archive(options: argparse.Namespace) -> int:
    return _archive_now(options) if options.verify or options.once else serve(options)


@interruptible
async def _archive_now(options: argparse.Namespace) -> int:
    _require_archive()
    from ops.commands.archive import check, once

    if options.verify:
        return await check(options.verify.resolve())
    folder, config = joined_run(options)
    return await once(folder, config, worker_name(options))


@interruptible
async def _import(options: argparse.Namespace) -> int:
    _require_archive()
    from ops.commands.import_ import main

    folder, config = joined_run(options)
    return await main(options.source.resolve(), folder, config, judgements=not options.no_judgements)


@interruptible
async def _export(options: argparse.Namespace) -> int:
    _require_archive()
    from ops.archive.exports.played import Selection
    from ops.commands.export import main
    from schemas.messages import Split

    split = Split(options.split) if options.split else None
    return await main(
        options.source.resolve(),
        options.out.resolve(),
        format_name=options.format,
        selection=Selection(split=split, min_reward=options.min_reward, rubric=options.rubric),
        leave_out_unchanged=options.leave_out_unchanged,
    )


@interruptible
async def _export_model(options: argparse.Namespace) -> int:
    from ops.commands.export_model import main

    return await main(options.run_dir.resolve(), options.out.resolve(), options.version)


def _require_archive() -> None:
    from ops.run.extras import require_extra

    require_extra("pyarrow", "archive")
