"""Shell: one session's conversation with one broker: ask, note down what came, comparable.

A session is a function that takes a `Conversation`. What it asks through `ask` and `every` is noted down; what its
set-up asks (`create`, `produce`) is not.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from . import codec
from .connection import ANSWER_LIMIT_S, Connection, NoAnswer, request_frame
from .normalise import Normaliser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Fields: TypeAlias = "Mapping[str, Any]"
Session: TypeAlias = "Callable[[Conversation], None]"

SILENCE_S: Final = 0.7
"""How long "no answer" is waited for."""
_NOT_READY: Final = (14, 15, 16)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""
SETUP_LIMIT_S: Final = 10.0
UNKNOWN_ID: Final = uuid.UUID("deadbeef-0000-4000-8000-000000000001")
"""A topic id that no broker gave."""
NO_ID: Final = uuid.UUID(int=0)
"""What stands for no topic id."""


class SetupError(Exception):
    """A broker would not do what a session needs before its first question."""


@attrs.frozen
class Step:
    """One question of a session and what came: `answer` is a decoded answer, or the text of a `NoAnswer`."""

    api: str
    version: int
    note: str
    answer: Any

    @property
    def name(self) -> str:
        """How differences name the step."""
        return f"{self.api} v{self.version}: {self.note}"


class Conversation:
    """Asks one broker; owns its connections until `close`."""

    def __init__(self, name: str, host: str, port: int) -> None:
        self.name = name
        self.steps: list[Step] = []
        self._address = (host, port)
        self._connections: dict[str, Connection] = {}
        self._settled = 0
        self.normaliser = Normaliser(host=host, port=port, now_ms=time.time_ns() // 1_000_000)
        self.normaliser.keep(UNKNOWN_ID)

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.close()

    def topic(self, suffix: str) -> str:
        """Return a topic name that no other session uses."""
        return f"{self.name}-{suffix}"

    def connection(self, on: str = "main") -> Connection:
        """Return the connection called `on`, opened (again) if need be."""
        found = self._connections.get(on)
        if found is None or not found.is_open:
            found = self._connections[on] = Connection(*self._address)
        return found

    # Asking.

    def ask(
        self,
        api: str,
        version: int,
        fields: Fields | None = None,
        *,
        note: str,
        on: str = "main",
        raw: bytes | None = None,
        own: str = "",
        expects_silence: bool = False,
    ) -> Any:
        """Ask, note down the answer, and return it as decoded (a dict, or a `NoAnswer`).

        Args:
            api: The API's name.
            version: Its version.
            fields: The request's fields; those that the version does not have are left out.
            note: What is special about this question, for a reader; part of the step's name.
            on: Which connection.
            raw: The body as bytes, in place of `fields`.
            own: Name of a list in the answer that is cut down to the session's own topics, and sorted.
            expects_silence: Wait only `SILENCE_S`.
        """
        body = codec.encode_request(api, version, fields or {}) if raw is None else raw
        answer = self._exchange(api, version, body, on, SILENCE_S if expects_silence else ANSWER_LIMIT_S)
        if isinstance(answer, dict) and own:
            answer[own] = self._own(answer[own])
        self.note_answer(api, version, note, answer)
        return answer

    def _own(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        named = [(str(entry.get("name") or entry.get("topic")), entry) for entry in entries]
        return [entry for name, entry in sorted(named, key=lambda pair: pair[0]) if name.startswith(f"{self.name}-")]

    def every(
        self, api: str, fields: Fields | Callable[[int], Fields], *, note: str, versions: Iterable[int] = (), **how: Any
    ) -> list[Any]:
        """Ask in every version of the API (or those given), and return the answers.

        Args:
            api: The API's name.
            fields: The request's fields, or a function from the version to them.
            note: As in `ask`.
            versions: Some versions only.
            how: Further arguments of `ask`.
        """
        return [
            self.ask(api, version, fields(version) if callable(fields) else fields, note=note, **how)
            for version in versions or codec.versions(api)
        ]

    def ask_later(self, api: str, version: int, fields: Fields, *, note: str, on: str) -> Callable[[], Any]:
        """Ask what is answered only after something else was asked; returns what notes the answer and returns it."""
        connection = self.connection(on)
        correlation_id = self.send(api, version, codec.encode_request(api, version, fields), on=on)

        def finish() -> Any:
            answer = decode_answer(api, version, correlation_id, connection.receive(ANSWER_LIMIT_S))
            self.note_answer(api, version, note, answer)
            return answer

        return finish

    def ask_frame(
        self,
        frame: bytes,
        *,
        note: str,
        as_api: str = "ApiVersions",
        as_version: int = 0,
        expects_silence: bool = False,
    ) -> Any:
        """Send bytes as they are over a connection of their own; note what came.

        Args:
            frame: What to send, the size and header included.
            note: As in `ask`.
            as_api: The API whose answer it is, should one come.
            as_version: The version in which to decode it; correlation id 1.
            expects_silence: Wait only `SILENCE_S`.
        """
        connection = self.connection("frame")
        connection.send(frame)
        answer = connection.receive(SILENCE_S if expects_silence else ANSWER_LIMIT_S)
        connection.close()
        decoded = decode_answer(as_api, as_version, 1, answer)
        self.note_answer(as_api, as_version, note, decoded)
        return decoded

    def note_answer(self, api: str, version: int, note: str, answer: Any) -> None:
        """Note down a decoded answer, or what came instead of one."""
        noted = answer.value if isinstance(answer, NoAnswer) else self.normaliser.answer(api, answer)
        self.note(api, version, note, noted)

    def note(self, api: str, version: int, note: str, answer: Any) -> None:
        """Note down a step that `ask` cannot express; `answer` is comparable already."""
        self.steps.append(Step(api, version, note, answer))

    def quietly(self, api: str, version: int, fields: Fields, *, on: str = "main") -> Any:
        """Ask without noting anything down."""
        return self._exchange(api, version, codec.encode_request(api, version, fields), on, ANSWER_LIMIT_S)

    def _exchange(self, api: str, version: int, body: bytes, on: str, limit_s: float) -> Any:
        connection = self.connection(on)
        correlation_id = self.send(api, version, body, on=on)
        return decode_answer(api, version, correlation_id, connection.receive(limit_s))

    def send(self, api: str, version: int, body: bytes, *, on: str = "main", key: int | None = None) -> int:
        """Send a request without waiting; return its correlation id.

        Args:
            api: The API's name; says which request header is used.
            version: Its version, as written in the header; need not exist.
            body: The encoded body.
            on: Which connection.
            key: Another API key than `api`'s.
        """
        connection = self.connection(on)
        correlation_id = connection.next_correlation_id
        connection.next_correlation_id += 1
        key = codec.api_key(api) if key is None else key
        flexible = codec.request_is_flexible(api, version)
        connection.send(request_frame(key, version, correlation_id, body, flexible=flexible))
        return correlation_id

    # Setting up, unnoted.

    def create(self, suffix: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        """Create a topic, wait until its partitions answer, and return its name."""
        name = self.topic(suffix)
        settings = [{"name": key, "value": value} for key, value in (configs or {}).items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
        answer = self.quietly("CreateTopics", 4, {"topics": [topic], "timeout_ms": 20000})
        if not isinstance(answer, dict) or answer["topics"][0]["error_code"]:
            raise SetupError(f"{name} was not created: {answer}")
        self.wait_served(name, partitions)
        return name

    def wait_served(self, name: str, partitions: int = 1) -> None:
        """Wait until every partition of a topic has a leader that answers."""
        asked = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
        deadline = time.monotonic() + SETUP_LIMIT_S  # noqa: TID251
        while True:
            answer = self.quietly(
                "ListOffsets", 1, {"replica_id": -1, "topics": [{"name": name, "partitions": asked}]}, on="setup"
            )
            if isinstance(answer, NoAnswer):
                raise SetupError(f"{name} is not served: {answer.value}")
            if not any(p["error_code"] for p in answer["topics"][0]["partitions"]):
                return
            if time.monotonic() > deadline:  # noqa: TID251
                raise SetupError(f"{name} is not served: {answer}")
            time.sleep(0.005)

    def settle(self) -> None:
        """Wait until the broker has seen every change of metadata that was answered before.

        Changes are answered when they are committed and applied a little later, in order: so once a topic created
        now is served, everything before it is applied.
        """
        self._settled += 1
        self.create(f"settled-{self._settled}")

    def until(self, api: str, version: int, fields: Fields | Callable[[], Fields], holds: Callable[[Any], bool]) -> Any:
        """Ask, unnoted, until something holds of the answer, and return that; `fields` may change from try to try.

        Raises:
            SetupError: it took longer than `SETUP_LIMIT_S`.
        """
        deadline = time.monotonic() + SETUP_LIMIT_S  # noqa: TID251
        while True:
            answer = self.quietly(api, version, fields() if callable(fields) else fields)
            if holds(answer):
                return answer
            if time.monotonic() > deadline:  # noqa: TID251
                raise SetupError(f"{api} is not ready: {answer}")
            time.sleep(0.005)

    def until_ready(self, api: str, version: int, fields: Fields) -> None:
        """Ask until the answer is not that a coordinator is loading or being made, as on a new broker."""
        self.until(api, version, fields, lambda answer: answer["error_code"] not in _NOT_READY)

    def topic_id(self, name: str) -> uuid.UUID:
        """Return a topic's id, which is known as that topic's from now on."""
        answer = self.quietly("Metadata", 12, {"topics": [{"name": name}], "allow_auto_topic_creation": False})
        self.normaliser.answer("Metadata", answer)
        found: uuid.UUID = answer["topics"][0]["topic_id"]
        return found

    def produce(self, topic: str, *batches: bytes, partition: int = 0) -> None:
        """Produce batches one by one; each must be taken."""
        for content in batches:
            data = [{"name": topic, "partition_data": [{"index": partition, "records": content}]}]
            answer = self.quietly("Produce", 7, {"acks": -1, "timeout_ms": 20000, "topic_data": data}, on="setup")
            if not isinstance(answer, dict) or answer["responses"][0]["partition_responses"][0]["error_code"]:
                raise SetupError(f"{topic} did not take a batch: {answer}")


def decode_answer(api: str, version: int, correlation_id: int, answer: bytes | NoAnswer) -> Any:
    """Decode a whole answer; a wrong header, what cannot be decoded and what is left over show in the result."""
    if isinstance(answer, NoAnswer):
        return answer
    start = 4
    if int.from_bytes(answer[:4], "big", signed=True) != correlation_id:
        return {"wrong_correlation_id": answer.hex()}
    if codec.response_header_is_flexible(api, version):
        if answer[4:5] != b"\0":
            return {"wrong_response_header": answer[:8].hex()}
        start = 5
    try:
        decoded, left_over = codec.decode_response(api, version, answer[start:])
    except ValueError as error:
        return {"undecodable": f"{error}: {answer[start : start + 80].hex()}"}
    if left_over:
        decoded["left_over_bytes"] = left_over
    return decoded


def run_session(name: str, session: Session, host: str, port: int) -> list[Step]:
    """Hold a session with the broker at `host` and `port`; what it noted down is returned.

    A session that cannot go on, because an answer lacks what the next question needs, ends with a step that says so.
    """
    conversation = Conversation(name, host, port)
    try:
        session(conversation)
    except (SetupError, LookupError, TypeError) as error:
        conversation.note("Session", 0, "broken off", f"{type(error).__name__}: {error}")
    finally:
        conversation.close()
    return conversation.steps
