"""A calibration for a terminal: its figures, the matrix of verdicts, and the disagreements."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from judges.spending import spending_rows
from ops.analysis.calibration.comparison import UNJUDGED, UNLABELLED, Disagreement
from ops.analysis.calibration.report import Calibration
from ops.analysis.verdict_matrix import verdict_matrix
from ops.statistics.shares import Share
from schemas.messages import Verdict
from schemas.text import visible

_WORDS = (*(verdict.value for verdict in Verdict), UNJUDGED, UNLABELLED)
_NAMED = 5
_TOLD = 40


def show(calibration: Calibration, console: Console) -> None:
    console.print(_figures(calibration))
    console.print(f"\n{calibration.truth} (rows) x {calibration.rubric}", markup=False, soft_wrap=True, highlight=False)
    compared = calibration.comparison
    console.print(verdict_matrix(compared.matrix, list(compared.verdicts), _WORDS))
    disagreements = compared.disagreements
    for disagreement in disagreements[:_TOLD]:
        console.print(_told(disagreement), soft_wrap=True)
    if len(disagreements) > _TOLD:
        console.print(
            f"\nand {len(disagreements) - _TOLD} more disagreements: --json writes all", highlight=False, markup=False
        )
    if calibration.unknown:
        more = " ..." if len(calibration.unknown) > _NAMED else ""
        listed = ", ".join(calibration.unknown[:_NAMED])
        text = f"\n{len(calibration.unknown)} labels of episodes that are not there: {listed}{more}"
        console.print(text, style="yellow", soft_wrap=True, highlight=False, markup=False)


def side_by_side(calibrations: Sequence[Calibration]) -> Table:
    """Several judges beside one truth, a line each."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    for column in ("compared", "agreement", "kappa", "precision", "recall", "TP", "FP", "FN", "TN", "calls", "cost"):
        table.add_column(column, justify="right", no_wrap=True)
    for calibration in calibrations:
        found, confusion = calibration.comparison, calibration.comparison.confusion
        shares = (confusion.agreement.value, confusion.kappa, confusion.precision.value, confusion.recall.value)
        counts = (confusion.true_positives, confusion.false_positives, confusion.false_negatives, confusion.true_negatives)
        table.add_row(
            calibration.rubric,
            str(confusion.number),
            *("-" if share is None else f"{share:.3f}" for share in shares),
            *map(str, counts),
            f"{found.spending.num_calls:,}",
            f"{found.spending.cost:.4f}",
        )
    return table


def _figures(calibration: Calibration) -> Table:
    found, confusion = calibration.comparison, calibration.comparison.confusion
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row("compared", f"[bold]{confusion.number}[/] of {sum(found.truths.values())} episodes")
    for name, share in (("precision", confusion.precision), ("recall", confusion.recall), ("agreement", confusion.agreement)):
        table.add_row(name, _share(share))
    for name, figure in (("F1", confusion.f1), ("Cohen's kappa", confusion.kappa), ("vote agreement", found.vote_agreement)):
        table.add_row(name, "-" if figure is None else f"[bold]{figure:.3f}[/]")
    for level, share in found.by_difficulty.items():
        table.add_row(f"agreement, difficulty {level}", _share(share))
    for name, value in spending_rows(found.spending):
        table.add_row(name, value)
    if calibration.other_spending is not None:
        for name, value in spending_rows(calibration.other_spending):
            table.add_row(f"{name}, {calibration.truth}", value)
    return table


def _share(share: Share) -> str:
    if share.value is None or share.interval is None:
        return "-"
    low, high = share.interval
    return f"[bold]{share.value:.3f}[/]  {low:.3f} to {high:.3f}  ({share.count} of {share.number})"


def _told(one: Disagreement) -> Text:
    return Text("\n".join(("", *map(visible, _lines(one)))))


def _lines(one: Disagreement) -> Iterator[str]:
    yield f"{one.episode}: {one.verdict}, should be {one.truth}" + (f" ({one.note})" if one.note else "")
    yield f"  task    {one.task}"
    yield f"  answer  {one.answer or '(none)'}"
    yield f"  reason  {one.reason or '(none given)'}"
