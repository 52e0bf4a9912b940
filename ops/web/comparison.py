"""Two episodes of one task, step by step, and where they part. Pure."""

from dataclasses import dataclass

from ops.web.detail import Answer, Detail, Step


@dataclass(frozen=True, slots=True)
class Pair:
    """One step of both."""

    step: int
    same_screenshot: bool
    """Both saw the same screenshot, byte for byte."""
    same_action: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    left: Detail
    right: Detail
    pairs: tuple[Pair, ...]
    first_difference: int | None
    """The first step at which they did not do the same; None: they never parted."""
    remark: str


def compare(left: Detail, right: Detail) -> Comparison:
    count = max(len(left.steps), len(right.steps))
    pairs = tuple(_pair(number, _at(left, number), _at(right, number)) for number in range(count))
    parted = next((pair.step for pair in pairs if not pair.same_action), None)
    return Comparison(left=left, right=right, pairs=pairs, first_difference=parted, remark=_remark(left, right))


def _remark(left: Detail, right: Detail) -> str:
    one, other = left.trajectory.task, right.trajectory.task
    if (one.split, one.task) != (other.split, other.task):  # a task's name is its own within a file
        return "These are episodes of different tasks."
    return "" if one.group == other.group else "These are episodes of one task, of different groups."


def _at(detail: Detail, number: int) -> Step | None:
    return detail.steps[number] if number < len(detail.steps) else None


def _pair(number: int, left: Step | None, right: Step | None) -> Pair:
    screenshots = [
        step.page.screenshot.sha256 if step and step.page and step.page.screenshot else None for step in (left, right)
    ]
    return Pair(
        step=number,
        same_screenshot=screenshots[0] is not None and screenshots[0] == screenshots[1],
        same_action=_same(left.answer if left else None, right.answer if right else None),
    )


def _same(left: Answer | None, right: Answer | None) -> bool:
    """Both ended here, or both did the very same."""
    if left is None or right is None:
        return left is right
    return (left.action, left.words, left.parsed) == (right.action, right.words, right.parsed)
