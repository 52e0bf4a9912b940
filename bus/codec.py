"""Messages to bytes and back: one typed decoder for every message there is.

Invariant: every message can be encoded. Texts are made valid where they enter; one that was not is encoded with the
replacement character in place of what UTF-8 cannot hold, so that no text ever ends the role that says it.
"""

import msgspec

from bus.ports import Record, StoredBytes
from schemas.errors import MessageCorrupt
from schemas.messages import AnyMessage
from schemas.text import encodable

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: AnyMessage) -> bytes:
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
    """Raises `MessageCorrupt` for anything that is not a message this version can read."""
    try:
        message: AnyMessage = _decoder.decode(data)
    except msgspec.ValidationError as error:
        raise MessageCorrupt(f"not a message of this version ({error}); upgrade this worker if the writer is newer") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MessageCorrupt(f"not MessagePack ({error})") from error
    return message


def record_of(stored: StoredBytes) -> Record:
    """Raises `MessageCorrupt`."""
    return Record(stored.stream, stored.subject, stored.seq, decode(stored.data), stored.time_s, stored.data)
