"""Pure core: Kafka's protocol: messages as classes, their bytes, headers, frames and the registry of APIs.

A message is schema and class at once, one class across versions:

    class PartitionProduceData(Message):
        index: int = f.int32()
        records: Buffer | None = f.records(nullable="0+")

    class ProduceRequest(Message, key=0, versions="3-13", flexible="9+"):
        transactional_id: str | None = f.string(nullable="3+", default=None)
        ...

    request = decode(ProduceRequest, frame, version=9)
    parts, size_bytes = encode(ProduceResponse(responses=[...]), version=9)

`fields.py` explains the notation; a field without versions is in all of them. Codecs are written, compiled and kept
at the first use of a class in a version (about 1 ms). Messages of Kafka's APIs are in `messages/api_NN_name.py`, and
are imported from there by name, or found by API key through `APIS`.

**Own messages.** The notation serves wherever versioned bytes are needed, for instance the records of the cluster's
metadata: declare a class with `Message` as above (`key` is the record's own type number, readable as
`cls.__api_key__`), write it with `encode_bytes(record, version)` and read it with `decode(cls, buffer, version,
exact=True)`. What goes before it (key, version) is the owner's; `unsigned_varint` and `read_unsigned_varint` of
`varint.py` write such numbers. Flexible from version 0 is the right choice for anything new: fields may then be added
as tagged ones that older readers skip.
"""

from .codec import ELEMENTS_MAX, decode, decoder, encode, encode_bytes, encoder
from .errors import DecodeError, EncodeError
from .framing import FrameBuffer
from .headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
)
from .message import Message
from .records import Encoded, Records, RecordsSlice
from .registry import APIS, Api, ListenerKind

__all__ = [
    "APIS",
    "ELEMENTS_MAX",
    "Api",
    "DecodeError",
    "EncodeError",
    "Encoded",
    "FrameBuffer",
    "ListenerKind",
    "Message",
    "Records",
    "RecordsSlice",
    "RequestHeader",
    "decode",
    "decode_request_header",
    "decode_response_header",
    "decoder",
    "encode",
    "encode_bytes",
    "encode_request",
    "encode_response",
    "encoder",
]
