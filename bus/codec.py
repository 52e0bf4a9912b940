"""Messages to bytes and back: one typed decoder for every message there is."""

import msgspec

from bus.ports import Record, StoredBytes
from schemas.errors import MessageCorrupt
from schemas.messages import AnyMessage

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: AnyMessage) -> bytes:
    return _encoder.encode(message)


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
