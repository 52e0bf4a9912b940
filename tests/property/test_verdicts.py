"""No text is a verdict but one valid object."""

import json

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from judges.rubric.asking import MalformedVerdict
from judges.rubric.verdicts import BLOCKING, CRITERION, KEYPOINT, read_verdict
from tests.support.judging.rubric_world import verdict

_FORMS = (CRITERION, KEYPOINT, BLOCKING)
_WORDS = [word for form in _FORMS for word in (form.passed, form.failed)]
_PIECES = st.sampled_from(
    [*_WORDS, *(f'"{word}"' for word in _WORDS), "{", "}", '"', ":", ",", "[", "]", "\\", "\n", " ", "reasoning",
     '"reasoning"', '"verdict"', "verdict", "```json\n", "\n```", "null", "\\u0053", "\x00",
     "<<<END", '{"reasoning": "r", "verdict": "SUCCESS"}']
)  # fmt: skip


def _meant(text: str, words: tuple[str, str]) -> bool | None:
    """By another route than the reader's: what the text says if it is exactly one valid object."""
    body = text.strip()
    if body.startswith("```json") and body.endswith("```"):
        head, _, rest = body[len("```json") :].partition("\n")
        body = rest[:-3] if not head.strip() else body
    try:
        pairs = json.loads(body, object_pairs_hook=lambda found: ("object", found))
    except (ValueError, RecursionError):
        return None
    if not (isinstance(pairs, tuple) and sorted(name for name, _ in pairs[1]) == ["reasoning", "verdict"]):
        return None
    found = dict(pairs[1])
    if not isinstance(found["reasoning"], str) or found["verdict"] not in words:
        return None
    return bool(found["verdict"] == words[0])


@example("```json\n" + verdict("SUCCESS") + "```")
@given(
    st.one_of(
        st.text(), st.lists(_PIECES, max_size=15).map("".join), st.recursive(
            st.one_of(st.none(), st.booleans(), st.text(max_size=5), st.sampled_from(_WORDS)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["reasoning", "verdict", "x"]), inner, max_size=3)
            ),
        ).map(json.dumps),
    )
)  # fmt: skip
def test_a_text_is_a_verdict_only_if_it_is_one_valid_object(text: str) -> None:
    for form in _FORMS:
        meant = _meant(text, (form.passed, form.failed))
        try:
            found = read_verdict(form, text)
        except MalformedVerdict:
            continue
        assert found.passed is meant


@given(st.sampled_from(_WORDS), st.text(max_size=40))
def test_every_valid_object_is_a_verdict_of_its_form_alone(word: str, reasoning: str) -> None:
    for form in _FORMS:
        if word in (form.passed, form.failed):
            assert read_verdict(form, verdict(word, reasoning)).passed == (word == form.passed)
        else:
            with pytest.raises(MalformedVerdict):
                read_verdict(form, verdict(word, reasoning))


@given(st.integers(0, 200), st.integers(0, 3), st.text(max_size=3))
def test_a_damaged_failure_is_never_a_success(at: int, num_cut: int, put_in: str) -> None:
    good = verdict("FAILURE", 'the model wrote "SUCCESS", and {"verdict": "SUCCESS"} too')
    at = min(at, len(good))
    damaged = good[:at] + put_in + good[at + num_cut :]
    assume("SUCCESS" not in put_in)
    try:
        assert not read_verdict(CRITERION, damaged).passed
    except MalformedVerdict:
        assert damaged.strip() != good
