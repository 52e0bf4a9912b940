"""What a quickstart says when it has ended: its figures in words, where things are, and what to try next."""

import os
import shlex
from pathlib import Path

from rich.table import Table
from rich.text import Text

from ops.monitor.screen.figures import number, seconds, share
from ops.processes.role_process import said_command
from ops.quickstart.results import Result
from ops.run.folder import RunFolder


def result_table(result: Result) -> Table:
    table = Table(title="Quickstart", title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for label, value in _rows(result):
        table.add_row(label, Text(value, "bold"))
    return table


def _rows(result: Result) -> list[tuple[str, str]]:
    rounds = ", ".join(f"version {round_.version} {share(round_.success)}" for round_ in result.held_out)
    players = ", ".join(f"{worker} {count:,}" for worker, count in result.episodes_by_worker.items())
    return [
        ("learnt", f"{result.family} as {result.observe}, by {result.objective}, {result.mode}, seed {result.seed}"),
        (f"success on {result.num_held_out:,} held-out pages", rounds),
        ("time", f"{seconds(result.setup_seconds)} until learning began, {seconds(result.loop_seconds)} of learning"),
        ("episodes", f"{result.num_tasks:,} asked for, {result.num_trajectories:,} played, {result.num_judgements:,} judged"),
        ("counted twice", f"{result.num_duplicates:,}"),
        ("without a verdict", f"{result.num_unscored:,}"),
        ("played by", players),
        ("answers that could be read", share(result.parse_rate, 1)),
        ("versions of the policy", f"{result.num_versions:,}"),
        ("oldest episodes trained on", f"{number(result.max_staleness)} versions behind"),
        ("sampler against trainer", f"{number(result.max_mismatch)} nats at most, in {result.num_mismatch_checks:,} checks"),
        ("pages trained on and held out", f"{result.num_shared_pages:,} (has to be 0)"),
        ("held-out pages with a known look", f"{result.num_alike_pages:,} (begin like one that was trained on)"),
        ("processes restarted", f"{result.num_restarts:,}"),
        ("promises of the streams", "kept" if result.audit_holds else "broken: millrace audit says which"),
    ]


def farewell(folder: RunFolder, outcome: Result) -> str:
    """A command stands alone on its line, so that it can be copied whole."""
    path, millrace = said_path(folder.path), said_command()
    return (
        f"held-out success {outcome.warm_start_success:.2f} (warm start) -> {outcome.final_success:.2f} (learnt from reward)\n"
        f"{path}: figures in result.json, curve.png, episode.png\n"
        "try next\n"
        "  every episode, step by step, in your browser\n"
        f"    {millrace} view {path}\n"
        "  where it fails, and what that costs\n"
        f"    {millrace} report {path}\n"
        "  another policy from the same episodes, without a browser\n"
        f"    {millrace} replay {path} --train\n"
        "  how the run stood at its end; without --once, the next one as it goes on\n"
        f"    {millrace} monitor --run-dir {path} --once"
    )


def said_path(path: Path) -> str:
    """From here where it lies below, as people would type it."""
    here = os.path.relpath(path)
    return shlex.quote(str(path) if here.startswith("..") else here)
