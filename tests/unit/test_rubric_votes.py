"""The decision on a question that is asked several times."""

import pytest

from judges.rubric.asking import Finding
from judges.rubric.votes import decide
from schemas.errors import NoVerdict

pytestmark = pytest.mark.anyio


async def _decided(said: str, num_votes: int) -> tuple[bool, str, str]:
    """`said`: a letter a vote: y, n, or - for no verdict. Returns the decision, whose reasoning it has, and the votes."""
    asked = 0

    async def ask(vote: int) -> Finding:
        nonlocal asked
        assert vote == asked, "votes are asked in order"
        asked += 1
        if said[vote] == "-":
            raise NoVerdict(f"vote {vote} is lost")
        return Finding(said[vote] == "y", f"reason {vote}")

    try:
        decision = await decide(ask, num_votes)
    finally:
        assert asked == len(said), "as many are asked as were scripted"
    return decision.passed, decision.reasoning, "".join("ny"[vote] for vote in decision.votes)


@pytest.mark.parametrize(
    ("said", "num_votes", "passed", "reasoning"),
    [
        ("y", 1, True, 0),
        ("n", 1, False, 0),
        ("yy", 3, True, 0),
        ("nn", 3, False, 0),
        ("yny", 3, True, 0),
        ("ynn", 3, False, 1),
        ("-yy", 3, True, 1),
        ("n-n", 3, False, 0),
        ("yyy", 5, True, 0),
        ("ynyny", 5, True, 0),
        ("-ynyy", 5, True, 1),
    ],
)
async def test_the_majority_decides_as_soon_as_it_is_one(said: str, num_votes: int, passed: bool, reasoning: int) -> None:
    assert await _decided(said, num_votes) == (passed, f"reason {reasoning}", said.replace("-", ""))


@pytest.mark.parametrize(
    ("said", "num_votes", "lost"),
    [("-", 1, 0), ("--", 3, 1), ("y-n", 3, 1), ("yn-", 3, 2), ("-yn", 3, 0), ("---", 5, 2), ("yn--", 5, 3), ("-y-n", 5, 2)],
)
async def test_lost_votes_that_leave_no_majority_leave_no_verdict(said: str, num_votes: int, lost: int) -> None:
    with pytest.raises(NoVerdict, match=f"vote {lost} is lost"):
        await _decided(said, num_votes)
