"""Shell: a session by chance, held with two brokers in step: both are asked the same, and the answers compared."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from .. import codec
from ..comparison import Difference, KnownDifference, compare
from ..connection import NoAnswer
from ..conversation import Conversation, Step, decode_answer
from ..group_talk import assigning_at_once, coordinated
from ..transaction_talk import CONCURRENT_TRANSACTIONS
from .draws import Draws
from .themes import THEMES
from .world import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Address: TypeAlias = tuple[str, int]

KNOWN: Final = Path(__file__).parent / "known.toml"
"""Differences between Kafka and ours, for `load_known`."""
STEPS_COUNT: Final = 30
ANSWER_LIMIT_S: Final = 8.0
_RETRY_LIMIT_S: Final = 10.0
_RETRY_PAUSE_S: Final = 0.03
_TOPICS: Final[Mapping[str, tuple[int, Mapping[str, str]]]] = {
    "a": (1, {}),
    "b": (3, {}),
    "c": (1, {"cleanup.policy": "compact"}),
}
_UNKNOWN_TOPIC: Final = 3
_LOADING: Final = frozenset({14, 15})
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE."""
_OF_TRANSACTIONS: Final = frozenset(
    {"InitProducerId", "EndTxn", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit"}
)
_ENDS: Final = frozenset({"EndTxn", "InitProducerId"})
"""What ends a transaction."""
_CHANGES: Final = frozenset(
    {
        "CreateTopics",
        "DeleteTopics",
        "CreatePartitions",
        "AlterConfigs",
        "IncrementalAlterConfigs",
        "AlterPartitionReassignments",
        "ElectLeaders",
    }
)
"""What is answered before it is applied."""
_ORDERED: Final = frozenset({"FindCoordinator", "DescribeTopicPartitions", "CreateTopics"})
"""Whose lists have an order in Kafka; those of others are of hash tables."""
_OF_SESSION: Final = {
    "ListGroups": ("groups", "group_id"),
    "ListTransactions": ("transaction_states", "transactional_id"),
}
"""Answers that tell of other sessions too: the list, and what names an entry."""


@attrs.frozen
class Finding:
    """A step that the brokers answered differently.

    Attributes:
        theme: Of the session.
        seed: Of the session.
        fields: What was asked, as drawn.
        steps: The first broker's, the second's.
        differences: Between them.
    """

    theme: str
    seed: int
    fields: Mapping[str, Any]
    steps: Sequence[Step]
    differences: Sequence[Difference]


def hold(
    theme: str, seed: int, addresses: Sequence[Address], known: Sequence[KnownDifference], *, run: str = ""
) -> Finding | None:
    """Hold one session with both brokers; return the first step that differs, or None.

    A session ends early where a known difference may have left the brokers in different states.

    Args:
        theme: A key of `THEMES`.
        seed: Which session of the theme.
        addresses: Of both brokers.
        known: Differences to pass over.
        run: A suffix of names, so that a session can be held twice with the same brokers.
    """
    name = f"{theme.replace('_', '')}{seed}{run}"
    talks = [Conversation(name, *address) for address in addresses]
    try:
        session = _Session(theme, seed, name, talks)
        for step in range(STEPS_COUNT):
            finding, is_over = session.step(step, known)
            if finding is not None or is_over:
                return finding
        return None
    finally:
        for talk in talks:
            talk.close()


class _Session:
    def __init__(self, theme: str, seed: int, name: str, talks: Sequence[Conversation]) -> None:
        self._theme, self._seed, self._name, self._talks = theme, seed, name, talks
        self._worlds = [World() for _ in talks]
        for talk, world in zip(talks, self._worlds, strict=True):
            self._set_up(talk, world)
        self._draws = Draws(Random(f"{theme} {seed}"), name, self._worlds[0])
        if theme == "transactions":
            fields = {"transactional_id": f"{name}-t", "transaction_timeout_ms": 60_000}
            answer, _ = self._ask("InitProducerId", 4, fields)
            self._draws.noted("InitProducerId", fields, answer, _error_codes(answer))

    def _set_up(self, talk: Conversation, world: World) -> None:
        for suffix, (partitions, configs) in _TOPICS.items():
            name = talk.create(suffix, partitions=partitions, configs=configs)
            world.learn("Metadata", {"name": name, "topic_id": talk.topic_id(name)})
        talk.until_ready("FindCoordinator", 1, {"key": f"{self._name}-t", "key_type": 1})
        assigning_at_once(talk, *coordinated(talk, "g", "h"))
        for transactional_id in (f"{self._name}-warm", None):
            fields = {"transactional_id": transactional_id, "transaction_timeout_ms": 1000}
            talk.until_ready("InitProducerId", 4, fields)

    def step(self, number: int, known: Sequence[KnownDifference]) -> tuple[Finding | None, bool]:
        """Ask once; return what differs, and whether the session is over."""
        api, version, fields = self._draws.request(
            THEMES[self._theme], in_fetch_sessions=self._theme == "fetch_sessions"
        )
        answers = self._ask(api, version, fields)
        made = _topics_being_made(api, fields, answers[0])
        if api in _ENDS and fields["transactional_id"]:
            # The answer does not wait for the markers.
            self._ask("DescribeTransactions", 0, {"transactional_ids": [fields["transactional_id"]]})
        if isinstance(answers[0], dict):
            self._draws.noted(api, fields, answers[0], _error_codes(answers[0]))
        steps = [
            Step(api, version, f"step {number}", self._comparable(api, talk, answer))
            for talk, answer in zip(self._talks, answers, strict=True)
        ]
        differences = compare(self._name, [steps[0]], [steps[1]])
        told = [world.counts() for world in self._worlds]
        if not differences and told[0] != told[1]:
            differences = [Difference(self._name, steps[0].name, "(drawn)", told[0], told[1])]
        unknown = [found for found in differences if not any(entry.covers(found) for entry in known)]
        if unknown:
            return Finding(self._theme, self._seed, fields, steps, unknown), True
        if api in _CHANGES and not fields.get("validate_only"):
            for talk in self._talks:
                talk.settle()
        for topic in made:
            for talk in self._talks:
                talk.wait_served(topic)
        is_silent = any(isinstance(answer, NoAnswer) for answer in answers)
        return None, is_silent or any(found.path.endswith("error_code") for found in differences)

    def _ask(self, api: str, version: int, fields: Mapping[str, Any]) -> list[Any]:
        """Ask both at once, again while a coordinator loads or ends a transaction; return what came."""
        bodies = [codec.encode_request(api, version, world.resolve(dict(fields))) for world in self._worlds]
        answers: list[Any] = [None] * len(self._talks)
        waiting = list(range(len(self._talks)))
        give_up = time.monotonic() + _RETRY_LIMIT_S  # noqa: TID251
        while waiting:
            ids = [self._talks[index].send(api, version, bodies[index]) for index in waiting]
            for index, correlation_id in zip(waiting, ids, strict=True):
                received = self._talks[index].connection().receive(ANSWER_LIMIT_S)
                answers[index] = decode_answer(api, version, correlation_id, received)
            may_wait = time.monotonic() < give_up  # noqa: TID251
            waiting = [index for index in waiting if may_wait and _is_to_be_asked_again(api, answers[index])]
            if waiting:
                time.sleep(_RETRY_PAUSE_S)
        for world, answer in zip(self._worlds, answers, strict=True):
            if isinstance(answer, dict):
                world.learn(api, answer)
        return answers

    def _comparable(self, api: str, talk: Conversation, answer: Any) -> Any:
        if isinstance(answer, NoAnswer):
            return answer.value
        if found := _OF_SESSION.get(api):
            name, key = found
            answer = {**answer, name: [entry for entry in answer[name] if entry[key].startswith(self._name)]}
        normalised = talk.normaliser.answer(api, answer)
        return normalised if api in _ORDERED else _sorted(normalised)


def _is_to_be_asked_again(api: str, answer: Any) -> bool:
    codes = set(_error_codes(answer))
    is_ending = isinstance(answer, dict) and any(
        entry.get("transaction_state", "").startswith("Prepare") for entry in answer.get("transaction_states", ())
    )
    return is_ending or bool(codes & _LOADING) or (CONCURRENT_TRANSACTIONS in codes and api in _OF_TRANSACTIONS)


def _topics_being_made(api: str, fields: Mapping[str, Any], answer: Any) -> Sequence[str]:
    """Return the topics that a Metadata request has made: it is answered before they are there."""
    if api != "Metadata" or not fields.get("allow_auto_topic_creation", True) or not isinstance(answer, dict):
        return ()
    return [topic["name"] for topic in answer["topics"] if topic["error_code"] == _UNKNOWN_TOPIC]


def _error_codes(answer: Any) -> list[int]:
    if isinstance(answer, list):
        return [code for item in answer for code in _error_codes(item)]
    if not isinstance(answer, dict):
        return []
    own = [value for name, value in answer.items() if name.endswith("error_code") and isinstance(value, int)]
    return own + [code for value in answer.values() for code in _error_codes(value)]


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(item) for name, item in value.items()}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=repr)
    return value
