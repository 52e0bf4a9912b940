"""Whatever is encoded is decoded to the same; whatever bytes arrive, reading them never crashes."""

import math
import random
from collections.abc import Iterator

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from bus.codec import decode, encode
from schemas.errors import MessageCorrupt
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import (
    Action,
    AnyMessage,
    Element,
    Heartbeat,
    Observation,
    Role,
    Screenshot,
    StepRequest,
    Trajectory,
    VersionSpan,
)
from schemas.ranges import LEAST_TEMPERATURE, MAX_STEPS
from schemas.text import encodable
from tests.builders import task
from tests.fixtures.write_messages import EXAMPLES
from tests.support.bus.poison import corrupted
from tests.support.texts.any_text import any_text

TASK = task()
_counts = st.integers(min_value=0, max_value=2**53 - 1)
_attempts = st.integers(min_value=0, max_value=1_000_000)
_step_numbers = st.integers(min_value=0, max_value=MAX_STEPS - 1)
_pixels = st.integers(min_value=-(2**31), max_value=2**31 - 1)
_amounts = st.floats(min_value=0, max_value=3.4e38)
_coordinates = st.floats(min_value=0, max_value=1000)
_logprobs = st.floats(min_value=-3.4e38, max_value=0)
_token_ids = st.integers(min_value=0, max_value=2**31 - 1)
_texts = st.text(st.characters(exclude_categories=["Cs"]))
_actions = st.builds(
    Action, point=st.none() | st.tuples(_coordinates, _coordinates), text=_texts, direction=_texts, seconds=_amounts
)
_observations = st.builds(
    Observation,
    episode=st.just(TASK.episode),
    attempt=_attempts,
    step=_step_numbers,
    screenshot=st.builds(Screenshot, data=st.binary(), media_type=_texts, width=_counts, height=_counts),
    url=_texts,
    title=_texts,
    error=_texts,
    elements=st.just(()),
    oracle=st.none() | st.tuples(_pixels, _pixels, _pixels, _pixels),
    oracle_action=st.none() | _actions,
)


@st.composite
def _step_requests(draw: st.DrawFn) -> StepRequest:
    completion = draw(st.lists(st.tuples(_token_ids, _logprobs), min_size=1, max_size=9))
    middle, step = draw(st.integers(0, len(completion))), draw(_step_numbers)
    spans = [(0, middle), (middle, len(completion))]
    return StepRequest(
        episode=TASK.episode,
        attempt=draw(_attempts),
        step=step,
        action=draw(_actions),
        parsed=draw(st.booleans()),
        response=draw(_texts),
        prompt_tokens=tuple(draw(st.lists(_token_ids, max_size=9))),
        completion_tokens=tuple(token for token, _ in completion),
        logprobs=draw(st.sampled_from([(), tuple(logprob for _, logprob in completion)])),
        versions=tuple(
            VersionSpan(start=start, end=end, version=PolicyVersion(draw(_pixels) & 0x7FFFFFFF))
            for start, end in spans
            if start < end
        ),
        screenshots=tuple(draw(st.lists(st.integers(0, step), max_size=4))),
        temperature=draw(st.just(0.0) | st.floats(min_value=LEAST_TEMPERATURE, max_value=3.4e38)),
    )


@given(_step_requests(), st.floats(min_value=0, max_value=LEAST_TEMPERATURE, exclude_min=True, exclude_max=True))
def test_no_answer_is_sampled_with_next_to_no_temperature(step: StepRequest, temperature: float) -> None:
    with pytest.raises(MessageCorrupt, match="with which nobody samples"):
        decode(encode(msgspec.structs.replace(step, temperature=temperature)))


@given(_observations | _step_requests())
def test_round_trip(message: AnyMessage) -> None:
    assert decode(encode(message)) == message


@given(any_text, any_text, st.lists(any_text, max_size=3))
def test_no_text_is_too_strange_to_be_encoded(title: str, name: str, changes: list[str]) -> None:
    screenshot = Screenshot(data=b"\xff\xd8", media_type=title, width=1, height=1)
    element = Element(id=1, tag=name, text=title, box=(0, 0, 1, 1))
    observation = Observation(
        episode=TASK.episode,
        attempt=1,
        step=0,
        screenshot=screenshot,
        url=name,
        title=title,
        elements=(element,),
        changes=tuple(changes),
    )
    read = decode(encode(observation))
    assert isinstance(read, Observation)
    assert (read.title, read.url, list(read.changes)) == (
        encodable(title),
        encodable(name),
        [encodable(each) for each in changes],
    )
    assert encode(read) == encode(observation)
    beat = Heartbeat(role=Role.POLICY, worker=WorkerId("p"), state=title, at=1.0, metrics={name: 1.0})
    assert decode(encode(beat)) == msgspec.structs.replace(beat, state=encodable(title), metrics={encodable(name): 1.0})


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    _read(data)


@given(st.sampled_from(EXAMPLES), st.data())
def test_damaged_messages(message: AnyMessage, data: st.DataObject) -> None:
    encoded = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    _read(bytes(encoded[: data.draw(st.integers(0, len(encoded)))]))


@given(st.sampled_from(EXAMPLES), st.randoms(use_true_random=False))
def test_what_can_be_read_can_be_written_and_used(message: AnyMessage, draw: random.Random) -> None:
    """One number or text of a message is wrong: it is refused, or all that is read of it is within bounds."""
    data, what = corrupted(message, draw)
    try:
        found = decode(data)
    except MessageCorrupt:
        return
    assert decode(encode(found)) == found, what
    numbers = list(_numbers(msgspec.to_builtins(found)))
    assert all(math.isfinite(number) and abs(number) <= 2**63 for number in numbers), what
    if isinstance(found, Trajectory):
        assert len(found.steps) <= len(found.observations) <= MAX_STEPS + 1


def _numbers(value: object) -> Iterator[float]:
    match value:
        case dict():
            for part in value.values():
                yield from _numbers(part)
        case list() | tuple():
            for part in value:
                yield from _numbers(part)
        case int() | float():
            yield value


def _read(data: bytes) -> None:
    try:
        message = decode(data)
    except MessageCorrupt:
        return
    assert isinstance(message, msgspec.Struct)
