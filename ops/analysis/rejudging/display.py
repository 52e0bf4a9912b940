"""The result of judging again, for a terminal."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from judges.spending import spending_rows
from ops.analysis.rejudging.report import UNJUDGED, Rejudged
from ops.analysis.verdict_matrix import verdict_matrix
from schemas.messages import Verdict

_WORDS = (*(verdict.value for verdict in Verdict), UNJUDGED)
_NAMED = 3


def report_table(found: Rejudged) -> Group:
    figures = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    figures.add_row("trajectories", f"[bold]{found.num_episodes:,}[/]")
    for word in _WORDS:
        if word in found.verdicts:
            figures.add_row(word, f"[bold]{found.verdicts[word]:,}[/]")
    for name, value in spending_rows(found.spending):
        figures.add_row(name, f"[bold]{value}[/]")
    figures.add_row("elapsed s", f"[bold]{found.elapsed_s:.1f}[/]")
    if not found.against:
        return Group(figures)
    matrix = verdict_matrix(found.confusion, list(found.verdicts), _WORDS)
    return Group(figures, f"\n{found.against} (rows) x {found.rubric}", matrix)


def summary(found: Rejudged) -> Text:
    """Says in one sentence what became of the trajectories, and what to do about those without a verdict."""
    if found.unjudged:
        more = f" and {len(found.unjudged) - _NAMED} more" if len(found.unjudged) > _NAMED else ""
        return Text(f"no judgement by {found.rubric}: {', '.join(found.unjudged[:_NAMED])}{more}", "bold red")
    if errors := found.verdicts.get(Verdict.ERROR.value, 0):
        told = f"every trajectory has a judgement by {found.rubric}, {errors:,} of them an error: for the reasons,"
        told += f" millrace watch judgements --no-follow --rubric {found.rubric} --verdict error;"
        return Text(f"{told} to judge again, another judge_config.label", "bold yellow")
    return Text(f"every trajectory has a judgement by {found.rubric}", "bold green")
