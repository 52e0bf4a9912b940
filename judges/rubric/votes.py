"""The decision on a question that is asked several times."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from judges.rubric.asking import Finding
from schemas.errors import NoVerdict


@dataclass(frozen=True, slots=True)
class Decision:
    """What the majority found."""

    passed: bool
    reasoning: str
    """Of the first vote that agrees with the majority."""
    votes: tuple[bool, ...]
    """In the order they were cast; a vote without a verdict is none."""


async def decide(ask: Callable[[int], Awaitable[Finding]], num_votes: int) -> Decision:
    """Asks vote 0, 1, ... until more than half of `num_votes` agree.

    Raises:
        NoVerdict: so many votes came to no verdict that the rest cannot decide; it is the last of theirs.
    """
    findings = list[Finding]()
    lost: NoVerdict | None = None
    needed = num_votes // 2 + 1
    for vote in range(num_votes):
        try:
            findings.append(await ask(vote))
        except NoVerdict as error:
            lost = error
        for passed in (True, False):
            agreeing = [finding for finding in findings if finding.passed is passed]
            if len(agreeing) >= needed:
                return Decision(passed, agreeing[0].reasoning, tuple(finding.passed for finding in findings))
        if lost is not None and not _can_be_decided(findings, needed, num_votes - vote - 1):
            raise lost
    raise AssertionError(f"{num_votes} votes are no odd number")


def _can_be_decided(findings: list[Finding], needed: int, num_left: int) -> bool:
    num_passed = sum(finding.passed for finding in findings)
    return max(num_passed, len(findings) - num_passed) + num_left >= needed
