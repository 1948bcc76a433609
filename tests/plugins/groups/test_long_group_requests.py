"""What groups have very much of is told in slices, by a task, and as it was at one moment where that matters."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio

from odradek.kernel.api import AS_TASK, ErrorCode, KafkaError, ProducerIdentity
from odradek.kernel.wire.messages.api_09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.kernel.wire.messages.api_16_list_groups import ListGroupsRequest
from odradek.plugins.groups.consumer.topics_hash import TopicHashes

from .handled import Context, HandledGroups

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.kernel.api import AsyncApiHandler, RequestContext

MANY = 2_500
PRODUCER = ProducerIdentity(7, 0)


def with_many_groups() -> HandledGroups:
    groups = HandledGroups(partitions_count=1)
    for number in range(600):
        groups.driven.commit({"t": {0: number}}, group=f"g{number}")
    return groups


def with_many_offsets() -> HandledGroups:
    groups = HandledGroups(partitions_count=1)
    groups.driven.broker.cluster.create("wide", MANY)
    groups.driven.commit({"wide": dict.fromkeys(range(MANY), 1), "t": {0: 5}})
    return groups


def begun(groups: HandledGroups, request: Any, version: int) -> Any:
    """Return the task of a request that the handler does not answer at once."""
    context = cast("RequestContext", Context(type(request).__api_key__, version))
    handler = groups.handlers[context.api_key]
    assert handler.handle(request, context) is AS_TASK
    return partial(cast("AsyncApiHandler", handler).handle_async, request, context)


def answer_while(ask: Callable[[], Awaitable[Any]], act: Callable[[], object]) -> Any:
    """Return the answer of a task, in whose first pause something else is done."""
    answers: list[Any] = []
    has_begun = trio.Event()

    async def note() -> None:
        has_begun.set()
        answers.append(await ask())

    async def act_in_between() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(note)
            await has_begun.wait()
            assert not answers
            act()

    trio.run(act_in_between)
    return answers[0]


def everything(version: int, *, requires_stable: bool = False) -> OffsetFetchRequest:
    if version < 8:
        return OffsetFetchRequest(group_id="g", topics=None, require_stable=requires_stable)
    group = OffsetFetchRequestGroup(group_id="g", topics=None)
    return OffsetFetchRequest(groups=[group], require_stable=requires_stable)


def test_of_many_groups_those_asked_for_are_listed() -> None:
    groups = with_many_groups()

    def listed(**filters: Any) -> list[str]:
        return [group.group_id for group in groups.answer(ListGroupsRequest(**filters), 5).groups]

    assert listed() == listed(states_filter=["Empty"], types_filter=["classic"]) == [f"g{n}" for n in range(600)]
    assert listed(states_filter=["Stable"]) == listed(types_filter=["consumer"]) == []


def test_a_group_that_goes_while_others_are_listed_is_left_out() -> None:
    groups = with_many_groups()
    ask = begun(groups, ListGroupsRequest(), 5)
    answer = answer_while(ask, lambda: groups.driven.harness.run(lambda shard, _: shard.delete_groups(["g599"])))

    assert [group.group_id for group in answer.groups] == [f"g{number}" for number in range(599)]


def test_groups_that_another_broker_has_by_now_are_not_listed() -> None:
    groups = with_many_groups()
    ask = begun(groups, ListGroupsRequest(), 5)
    groups.runtime.error = KafkaError(ErrorCode.NOT_COORDINATOR)

    assert trio.run(ask).groups == []
    groups.runtime.error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaError) as raised:
        trio.run(ask)
    assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", [7, 9])
def test_very_many_offsets_are_told_by_topic(version: int) -> None:
    groups = with_many_offsets()
    begun(groups, everything(version), version)
    answer = groups.answer(everything(version), version)
    topics = answer.topics if version < 8 else answer.groups[0].topics

    assert {topic.name: [part.committed_offset for part in topic.partitions] for topic in topics} == {
        "wide": [1] * MANY,
        "t": [5],
    }


def test_an_error_about_very_many_offsets_is_the_groups() -> None:
    groups = with_many_offsets()
    ask = begun(groups, everything(9), 9)
    groups.runtime.error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert trio.run(ask).groups[0].error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(("requires_stable", "told"), [(False, {(1, 0)}), (True, {(-1, 88)})])
def test_a_transaction_that_ends_meanwhile_is_not_seen_in_part(requires_stable: bool, told: set[Any]) -> None:
    groups = with_many_offsets()
    groups.driven.commit({"wide": dict.fromkeys(range(MANY), 2)}, producer=PRODUCER)
    ask = begun(groups, everything(9, requires_stable=requires_stable), 9)
    answer = answer_while(ask, lambda: groups.driven.harness.end_transaction(PRODUCER, is_commit=True))
    wide = answer.groups[0].topics[0]

    assert {(part.committed_offset, part.error_code) for part in wide.partitions} == told
    assert groups.driven.fetch()["wide"][0] == 2


def test_names_that_no_topic_has_count_for_nothing_however_many() -> None:
    cluster = HandledGroups().driven.broker.cluster
    names = {f"nothing-{number}" for number in range(MANY)}
    hashes = TopicHashes()

    assert hashes.of_group(names | {"t", "u"}, cluster) == hashes.of_group({"t", "u"}, cluster) != 0
    assert hashes.of_group(names, cluster) == 0
