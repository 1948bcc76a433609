"""Pure core: the script of `odradek assign simulate`: what happens to a group, a line a step.

    topic orders 10                   there is a topic, or it has that many partitions from now on
    topic orders 10 racks r1 r2 r3    its partitions' replicas are in these racks in turn
    delete orders                     the topic is gone
    join a b c                        members join; they read every topic
    join d reads orders in r1         one that reads some topics only, and is in a rack
    leave c                           members leave
    change a reads orders payments    members read other topics

Steps may also stand in one line, between semicolons; `#` begins a comment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.contracts.assignor import SubscribedTopic
from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

EXAMPLE: Final = ("topic orders 10", "join a b c", "leave c", "join d")
"""What is simulated when nothing else is said."""

PARTITIONS_MAX: Final = 100_000


@attrs.frozen
class Member:
    """A member of the simulated group.

    Attributes:
        topics: What it reads; None for every topic.
        rack: Its rack.
    """

    topics: frozenset[str] | None
    rack: str | None


@attrs.define
class World:
    """The cluster and the group, as the script made them so far.

    Attributes:
        topics: The topics by name.
        members: The members by id, in the order in which they joined.
    """

    topics: dict[str, SubscribedTopic] = attrs.field(factory=dict)
    members: dict[str, Member] = attrs.field(factory=dict)

    def wanted(self, member_id: str) -> frozenset[str]:
        """Return the existing topics that a member reads."""
        topics = self.members[member_id].topics
        return frozenset(self.topics) if topics is None else topics & self.topics.keys()


@attrs.frozen
class Step:
    """One line of the script.

    Attributes:
        text: As it was written.
        where: Where it stands, for an error.
        words: What it says.
    """

    text: str
    where: str
    words: Sequence[str]


def read_steps(lines: Iterable[str], source: str) -> Iterator[Step]:
    """Yield the steps of a script; nothing of them is checked yet.

    Args:
        lines: The script.
        source: What to call it in an error.
    """
    for number, line in enumerate(lines, 1):
        for part in line.partition("#")[0].split(";"):
            if words := part.split():
                yield Step(" ".join(words), f"{source}, line {number}", words)


def apply(step: Step, world: World) -> None:
    """Let a step happen.

    Raises:
        ConfigError: It says nothing that can be done.
    """
    verb, *words = step.words
    act = _VERBS.get(verb)
    if act is None:
        raise ConfigError(f"there is no step {verb!r}", where=step.where, hint=f"steps are {', '.join(_VERBS)}")
    try:
        act(words, world)
    except ValueError as error:
        raise ConfigError(f"{step.text!r}: {error}", where=step.where) from None


def _clauses(words: Sequence[str], *keywords: str) -> dict[str, list[str]]:
    """Return the words by the keyword before them, those at the beginning under an empty one."""
    found: dict[str, list[str]] = {"": []}
    current = found[""]
    for word in words:
        if word in keywords:
            current = found[word] = []
        else:
            current.append(word)
    for keyword, some in found.items():
        if keyword and not some:
            raise ValueError(f"something is missing after {keyword!r}")
    return found


def _topic(words: Sequence[str], world: World) -> None:
    clauses = _clauses(words, "racks")
    match clauses[""]:
        case [name, count] if count.isascii() and count.isdigit() and int(count) <= PARTITIONS_MAX:
            racks = clauses.get("racks", [])
            places = [frozenset({racks[partition % len(racks)]}) for partition in range(int(count)) if racks]
            world.topics[name] = SubscribedTopic(int(count), places)
        case _:
            raise ValueError(f"expected a topic and how many partitions it has, {PARTITIONS_MAX} at most")


def _delete(words: Sequence[str], world: World) -> None:
    for name in _known(words, world.topics, "topic"):
        del world.topics[name]


def _join(words: Sequence[str], world: World) -> None:
    clauses = _clauses(words, "reads", "in")
    topics = frozenset(_known(clauses["reads"], world.topics, "topic")) if "reads" in clauses else None
    rack = clauses.get("in", [None])[0]
    if not clauses[""]:
        raise ValueError("expected a member")
    for member_id in clauses[""]:
        if member_id in world.members:
            raise ValueError(f"{member_id} is a member already")
        world.members[member_id] = Member(topics, rack)


def _leave(words: Sequence[str], world: World) -> None:
    for member_id in _known(words, world.members, "member"):
        del world.members[member_id]


def _change(words: Sequence[str], world: World) -> None:
    clauses = _clauses(words, "reads")
    topics = frozenset(_known(clauses.get("reads", []), world.topics, "topic"))
    for member_id in _known(clauses[""], world.members, "member"):
        world.members[member_id] = attrs.evolve(world.members[member_id], topics=topics)


def _known(words: Sequence[str], known: Iterable[str], what: str) -> Sequence[str]:
    if not words:
        raise ValueError(f"expected a {what}")
    there = list(known)
    for word in words:
        if word not in there:
            raise ValueError(f"there is no {what} {word!r} (there: {', '.join(there) or 'none'})")
    return list(dict.fromkeys(words))


_VERBS: Final[dict[str, Callable[[Sequence[str], World], None]]] = {
    "topic": _topic,
    "delete": _delete,
    "join": _join,
    "leave": _leave,
    "change": _change,
}
