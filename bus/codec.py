"""Messages to bytes and back: one typed decoder for every message there is.

Invariant: what is written can be read. A record whose form, ranges or parts are wrong, or that stands where another belongs,
is refused where it is read, by every reader alike; and where it is written, before it is. Texts are made valid where they
enter; one that was not is written with the replacement character in place of what UTF-8 cannot hold, so that no text ever ends
the role that says it.
"""

import msgspec

from bus.belonging import misplaced
from bus.ports import Record, StoredBytes
from schemas.errors import MessageCorrupt
from schemas.messages import AnyMessage
from schemas.text import encodable

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: AnyMessage) -> bytes:
    """Raises `MessageCorrupt` for what no reader would take."""
    try:
        data = _encoded(message)
        decode(data)
    except (TypeError, ValueError, OverflowError, MessageCorrupt) as error:
        raise MessageCorrupt(f"a {type(message).__name__} cannot be written: {error}") from error
    return data


def _encoded(message: AnyMessage) -> bytes:
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        return _encoder.encode(_encodable(message))


def _encodable(message: AnyMessage) -> AnyMessage:
    plain = _with_encodable_texts(msgspec.to_builtins(message, builtin_types=(bytes,)))
    made: AnyMessage = msgspec.convert(plain, type(message), builtin_types=(bytes,))
    return made


def _with_encodable_texts(value: object) -> object:
    match value:
        case str():
            return encodable(value)
        case dict():
            return {_with_encodable_texts(key): _with_encodable_texts(part) for key, part in value.items()}
        case list() | tuple():
            return [_with_encodable_texts(part) for part in value]
        case _:
            return value


def decode(data: bytes) -> AnyMessage:
    """Raises `MessageCorrupt` for what is not a message this version can read, and for one that contradicts itself."""
    try:
        message: AnyMessage = _decoder.decode(data)
    except msgspec.ValidationError as error:
        raise MessageCorrupt(f"not a message of this version ({error}); upgrade this worker if the writer is newer") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MessageCorrupt(f"not MessagePack ({error})") from error
    if contradiction := message.contradiction():
        raise MessageCorrupt(f"it contradicts itself: {contradiction}")
    return message


def decode_under(subject: str, data: bytes) -> AnyMessage:
    """The same, for a message that came under a subject. Raises `MessageCorrupt` also where it belongs under another."""
    message = decode(data)
    if reason := misplaced(subject, message):
        raise MessageCorrupt(reason)
    return message


def record_of(stored: StoredBytes) -> Record:
    """Raises `MessageCorrupt`, which says which record it is."""
    try:
        message = decode_under(stored.subject, stored.data)
    except MessageCorrupt as error:
        raise MessageCorrupt(
            f"record {stored.seq} of {stored.stream}, {stored.subject}: {error}", subject=stored.subject, seq=stored.seq
        ) from error
    return Record(stored.stream, stored.subject, stored.seq, message, stored.time_s, stored.data)
