"""Whatever is encoded is decoded to the same; whatever bytes arrive, reading them never crashes."""

import hypothesis.strategies as st
import msgspec
from hypothesis import given, settings

from bus.codec import decode, encode
from schemas.errors import MessageCorrupt
from schemas.ids import WorkerId
from schemas.messages import Action, AnyMessage, Element, Heartbeat, Observation, Picture, Role, StepRequest, VersionSpan
from schemas.text import encodable
from tests.any_text import any_text
from tests.builders import task
from tests.fixtures.write_messages import EXAMPLES

TASK = task()
_counts = st.integers(min_value=0, max_value=2**53)
_reals = st.floats(allow_nan=False)
_texts = st.text(st.characters(exclude_categories=["Cs"]))
_actions = st.builds(Action, point=st.none() | st.tuples(_reals, _reals), text=_texts, direction=_texts, seconds=_reals)
_observations = st.builds(
    Observation,
    episode=st.just(TASK.episode),
    attempt=_counts,
    step=_counts,
    picture=st.builds(Picture, data=st.binary(), media_type=_texts, width=_counts, height=_counts),
    url=_texts,
    title=_texts,
    error=_texts,
    elements=st.just(()),
    oracle=st.none() | st.tuples(_counts, _counts, _counts, _counts),
    oracle_action=st.none() | _actions,
)
_steps = st.builds(
    StepRequest,
    episode=st.just(TASK.episode),
    attempt=_counts,
    step=_counts,
    action=_actions,
    parsed=st.booleans(),
    response=_texts,
    prompt_tokens=st.lists(_counts, max_size=9).map(tuple),
    completion_tokens=st.lists(_counts, max_size=9).map(tuple),
    logprobs=st.lists(_reals, max_size=9).map(tuple),
    versions=st.lists(st.builds(VersionSpan, start=_counts, end=_counts, version=_counts), max_size=3).map(tuple),
    pictures=st.lists(_counts, max_size=4).map(tuple),
    temperature=_reals,
)


@given(_observations | _steps)
@settings(deadline=None)
def test_round_trip(message: AnyMessage) -> None:
    assert decode(encode(message)) == message


@given(any_text, any_text, st.lists(any_text, max_size=3))
@settings(deadline=None)
def test_no_text_is_too_strange_to_be_encoded(title: str, name: str, changes: list[str]) -> None:
    picture = Picture(data=b"\xff\xd8", media_type=title, width=1, height=1)
    element = Element(id=1, tag=name, text=title, box=(0, 0, 1, 1))
    observation = Observation(
        episode=TASK.episode,
        attempt=1,
        step=0,
        picture=picture,
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
@settings(deadline=None)
def test_any_bytes(data: bytes) -> None:
    _read(data)


@given(st.sampled_from(EXAMPLES), st.data())
@settings(deadline=None)
def test_damaged_messages(message: AnyMessage, data: st.DataObject) -> None:
    encoded = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    _read(bytes(encoded[: data.draw(st.integers(0, len(encoded)))]))


def _read(data: bytes) -> None:
    try:
        message = decode(data)
    except MessageCorrupt:
        return
    assert isinstance(message, msgspec.Struct)
