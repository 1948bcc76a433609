"""Shell: a session's conversation with three brokers: each question says which of them is asked.

A connection's name begins with the broker's id; the first broker is asked where nothing is said. What brokers of a
cluster draw by chance (who is the controller, on which port a broker listens) becomes a name.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from .connection import Connection, NoAnswer
from .conversation import SETUP_LIMIT_S, Conversation, SetupError
from .normalise import Normaliser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    ClusterSession: TypeAlias = Callable[["ClusterTalk"], None]

NODES: Final = ("1", "2", "3")
LIMIT_S: Final = 3 * SETUP_LIMIT_S


class ClusterNormaliser(Normaliser):
    """Names ports by who listens there; who is told to be the controller is chance, as any broker is told."""

    def __init__(self, ports: Mapping[int, str], *, host: str, now_ms: int) -> None:
        super().__init__(host=host, port=-1, now_ms=now_ms)
        self._ports = ports

    def _integer(self, name: str, value: int) -> int | str:
        if name == "port" and value in self._ports:
            return f"<port of {self._ports[value]}>"
        if name == "controller_id" and str(value) in NODES:
            return "<a broker>"
        return super()._integer(name, value)


class ClusterTalk(Conversation):
    """Asks three brokers; owns its connections until `close`."""

    def __init__(self, name: str, addresses: Mapping[str, tuple[str, int]]) -> None:
        host, port = addresses[NODES[0]]
        super().__init__(name, host, port)
        self._addresses = addresses
        self.normaliser = ClusterNormaliser(
            {port: node for node, (_host, port) in addresses.items()}, host=host, now_ms=self.normaliser.now_ms
        )

    def connection(self, on: str = "main") -> Connection:
        """Return the connection called `on`; a name that begins with a broker's id leads to that one."""
        found = self._connections.get(on)
        if found is None or not found.is_open:
            node = on[0] if on[0] in NODES else NODES[0]
            found = self._connections[on] = Connection(*self._addresses[node])
        return found

    def place(self, suffix: str, *replicas: Sequence[int], configs: Mapping[str, str] | None = None) -> str:
        """Create a topic on these brokers, and wait until each broker knows it and all replicas are in sync."""
        name = self.topic(suffix)
        assignments = [{"partition_index": index, "broker_ids": list(ids)} for index, ids in enumerate(replicas)]
        settings = [{"name": key, "value": value} for key, value in (configs or {}).items()]
        topic = {"name": name, "num_partitions": -1, "replication_factor": -1} | {
            "assignments": assignments,
            "configs": settings,
        }
        answer = self.quietly("CreateTopics", 4, {"topics": [topic], "timeout_ms": 20000})
        if not isinstance(answer, dict) or answer["topics"][0]["error_code"]:
            raise SetupError(f"{name} was not created: {answer}")
        self.wait_placed(name, *replicas)
        return name

    def wait_placed(self, name: str, *replicas: Sequence[int]) -> None:
        """Wait until each broker knows that a topic's partitions are on these, led by the first, and all in sync."""

        def stands(partition: Mapping[str, Any]) -> bool:
            wanted = [*replicas[partition["partition_index"]]]
            is_led = partition["leader_id"] == wanted[0] and not partition["error_code"]
            return is_led and partition["replica_nodes"] == wanted and {*partition["isr_nodes"]} == {*wanted}

        for node in NODES:
            self.wait_told(name, len(replicas), stands, node)
        for index, ids in enumerate(replicas):
            asked = [{"name": name, "partitions": [{"partition_index": index, "timestamp": -1}]}]
            self.wait(
                "ListOffsets",
                1,
                {"replica_id": -1, "topics": asked},
                lambda answer: answer["topics"][0]["partitions"][0]["error_code"] == 0,
                on=str(ids[0]),
            )

    def wait_told(self, name: str, count: int, holds: Callable[[Mapping[str, Any]], bool], node: str) -> None:
        """Wait until a broker's Metadata says of each of a topic's partitions what shall hold."""

        def is_told(answer: Any) -> bool:
            (topic,) = answer["topics"]
            return len(topic["partitions"]) == count and all(map(holds, topic["partitions"]))

        asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        self.wait("Metadata", 9, asked, is_told, on=node)

    def wait(self, api: str, version: int, fields: Mapping[str, Any], holds: Callable[[Any], bool], *, on: str) -> Any:
        """Ask a broker, unnoted, until something holds of the answer, and return that.

        Raises:
            SetupError: It took longer than `LIMIT_S`.
        """
        deadline = time.monotonic() + LIMIT_S  # noqa: TID251
        while True:
            answer = self.quietly(api, version, fields, on=on)
            if not isinstance(answer, NoAnswer) and holds(answer):
                return answer
            if time.monotonic() > deadline:  # noqa: TID251
                raise SetupError(f"{api} is not so: {answer}")
            time.sleep(0.01)

    def coordinator(self, key: str, key_type: int = 0) -> str:
        """Return which broker coordinates a group (0) or a transactional id (1), once all brokers know it."""
        fields = {"key": key, "key_type": key_type}
        answers = [
            self.wait("FindCoordinator", 2, fields, lambda found: found["error_code"] == 0, on=f"{node}-setup")
            for node in NODES
        ]
        return str(answers[0]["node_id"])


def run_cluster_session(name: str, session: ClusterSession, addresses: Mapping[str, tuple[str, int]]) -> list[Any]:
    """Hold a session with three brokers; what it noted down is returned, see `run_session`."""
    talk = ClusterTalk(name, addresses)
    try:
        session(talk)
    except (SetupError, LookupError, TypeError) as error:
        talk.note("Session", 0, "broken off", f"{type(error).__name__}: {error}")
    finally:
        talk.close()
    return talk.steps
