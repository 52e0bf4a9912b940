"""Whatever a site or an endpoint says of when it may be asked again, it is a time to wait, or nothing is known of it."""

import math

from hypothesis import example, given
from hypothesis import strategies as st

from browser_workers.blockages import recognition
from judges.endpoint import limits

_NOW_S = 1.7e9
_DATES = st.sampled_from(
    [
        "Mon, 01 Jan 2024 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Mon, 01 Jan 0001 00:00:00 +2359",
        "Monday, 01-Jan-24 00:00:00 +0100",
        "Mon Jan  1 00:00:00 2024",
    ]
)


@st.composite
def _damaged(draw: st.DrawFn) -> str:
    """A date in which something is repeated or left out."""
    date = draw(_DATES)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(date)))
        put_in = draw(st.sampled_from("0123456789 +-:,.")) * draw(st.sampled_from([0, 1, 8, 20]))
        date = date[:at] + put_in + date[at + draw(st.integers(0, 3)) :]
    return date


@example("Mon, 01 Jan 2024 00:00:00 +9999999999999999")
@example("Mon, 01 Jan 2499999999 00:00:00 +0100")
@example("9" * 5000)
@given(st.one_of(_DATES, _damaged(), st.text()))
def test_any_header(said: str) -> None:
    assert 0.0 <= recognition.retry_after_s(said, _NOW_S) <= 30 * 86_400.0
    for headers in ({"retry-after": said}, {"retry-after": said, "date": said}, {"retry-after-ms": said}):
        seconds = limits.retry_after_s(headers, None, now=_NOW_S)
        assert seconds is None or (seconds >= 0.0 and math.isfinite(seconds))
