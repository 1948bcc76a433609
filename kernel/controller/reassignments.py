"""Pure core: AlterPartitionReassignments and ListPartitionReassignments: a partition moves to other brokers.

While it moves, the partition has the replicas that it is to have and those that it will lose; it is done when enough of
those that it is to have are in sync (`partition_states.with_completed_reassignment`), at once where they are already.
Until then nobody is dropped, not even whom an earlier reassignment was adding: perhaps no other one is in sync any
more. Where replicas vote it takes steps (`voter_steps`).

| reassigned from [1, 2] to | replicas | adding | removing |
| --- | --- | --- | --- |
| [2, 3] | 2, 3, 1 | 3 | 1 |
| then, before it is done, [2, 4] | 2, 4, 1, 3 | 3, 4 | 1, 3 |
| then cancelled | 2, 1 | | |

*Source:* KIP-455; Kafka's `PartitionReassignmentReplicas`, as observed on 4.3.1. Where the new
one adds nobody Kafka goes on adding what the earlier one was, also what it removes, and is then never done; here who is
to go is not waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..contracts.coordinator import CoordinatorResult
from ..contracts.election import ElectionReason
from ..errors import ErrorCode, KafkaError
from ..metadata.image import is_reassigned
from ..metadata.record_makers import changed_partition_record
from ..wire.messages import api_45_alter_partition_reassignments as altering
from ..wire.messages import api_46_list_partition_reassignments as listing
from . import voter_steps
from .partition_states import next_state, on_working_directories, rules_of, wanted_replicas
from .replica_assignment import check_assignment
from .rules import replica_directories

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ..contracts.election import ElectionFactory, PartitionState
    from ..metadata.image import MetadataImage, TopicImage
    from ..metadata.records import MetadataRecord, PartitionRecord
    from .rules import ControllerRules, Steps


def alter_partition_reassignments(
    image: MetadataImage, rules: ControllerRules, request: altering.AlterPartitionReassignmentsRequest
) -> Steps[altering.AlterPartitionReassignmentsResponse]:
    """Begin or cancel reassignments; each partition is answered by itself."""
    records: list[MetadataRecord] = []
    responses = []
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            answer = altering.ReassignablePartitionResponse(
                partition_index=partition.partition_index, error_message=None
            )
            may_resize = request.allow_replication_factor_change
            try:
                records += _alter_one(image, rules, topic.name, partition, may_resize=may_resize)
            except KafkaError as error:
                answer.error_code = error.code
                # Kafka gives no text where there is nothing to cancel.
                is_silent = error.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
                answer.error_message = None if is_silent else error.detail
            answers.append(answer)
            yield
        responses.append(altering.ReassignableTopicResponse(name=topic.name, partitions=answers))
    return CoordinatorResult(
        records,
        altering.AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            # Kafka answers an empty request with an empty text, any other one with none.
            error_message=None if request.topics else "",
            responses=responses,
        ),
    )


def list_partition_reassignments(
    image: MetadataImage, _rules: ControllerRules, request: listing.ListPartitionReassignmentsRequest
) -> Steps[listing.ListPartitionReassignmentsResponse]:
    """Tell which reassignments go on among the partitions asked for, or among all."""
    wanted: dict[str, Iterable[int]]
    if request.topics is None:
        wanted = {name: range(len(topic.partitions)) for name, topic in image.topics_by_name.items()}
    else:
        wanted = {topic.name: topic.partition_indexes for topic in request.topics}
    topics = []
    for name, indexes in wanted.items():
        moving = []
        known = image.topics_by_name.get(name)
        for index in indexes:
            if known is not None and 0 <= index < len(known.partitions):
                state = known.partitions[index]
                if is_reassigned(state):
                    moving.append(
                        listing.OngoingPartitionReassignment(
                            partition_index=index,
                            replicas=list(state.replicas),
                            adding_replicas=[*state.adding_replicas, *_returning(state)],
                            removing_replicas=list(state.removing_replicas),
                        )
                    )
            yield
        if moving:
            topics.append(listing.OngoingTopicReassignment(name=name, partitions=moving))
    return CoordinatorResult([], listing.ListPartitionReassignmentsResponse(error_message=None, topics=topics))


def _returning(state: PartitionState) -> Iterator[int]:
    """Iterate over replicas that vote no more, and are to vote again, as their removal was cancelled."""
    known = {*state.voters, *state.adding_replicas, *state.removing_replicas}
    return (replica for replica in state.replicas if state.voters and replica not in known)


def _alter_one(
    image: MetadataImage,
    rules: ControllerRules,
    name: str,
    wanted: altering.ReassignablePartition,
    *,
    may_resize: bool,
) -> list[MetadataRecord]:
    index = wanted.partition_index
    topic = image.topics_by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    state = topic.partitions[index]
    topic_rules = rules_of(image, rules.config_at(image), topic, rules.election(topic.election), image.live_brokers())
    if topic_rules.has_voters and wanted.replicas is not None and set(wanted.replicas) != set(state.replicas):
        _check_voters_may_change(topic, index, topic_rules.factory)
    if wanted.replicas is None:
        changed = _cancelled(state) if not topic_rules.has_voters else _with_former_voters(state)
    else:
        check_assignment(wanted.replicas, None, image, staying=state.replicas)
        _check_size(state, wanted.replicas, may_resize=may_resize)
        begin = voter_steps.begun if topic_rules.has_voters else _begun
        changed = begin(state, tuple(wanted.replicas))
    topic_rules = on_working_directories(topic_rules, image, topic, index)
    following = next_state(state, changed, topic_rules, ElectionReason.REASSIGNMENT)
    if following is None:
        return []
    record = changed_partition_record(topic, index, following)
    if topic_rules.has_voters:
        _place_voters(image, rules, topic_rules.factory, record, staying=state.replicas)
    return [record]


def _check_voters_may_change(topic: TopicImage, index: int, factory: ElectionFactory) -> None:
    if not voter_steps.changes_voters(factory):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The replicas of {topic.name}:{index} are the voters that choose its leader; its election, "
            f"{topic.election}, does not change voters while it serves, but for their order.",
        )


def _place_voters(
    image: MetadataImage,
    rules: ControllerRules,
    factory: ElectionFactory,
    record: PartitionRecord,
    *,
    staying: Collection[int],
) -> None:
    """Say in which log directories new voters are: in others a replica of theirs has no vote."""
    new = [replica for replica in record.replicas if replica not in staying]
    chosen = dict(zip(new, replica_directories(image, rules, factory, new), strict=True))
    record.directories = [
        chosen.get(replica, known) for replica, known in zip(record.replicas, record.directories, strict=True)
    ]


def _with_former_voters(state: PartitionState) -> PartitionState:
    """Return the state in which a change of voters is cancelled."""
    if not is_reassigned(state):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    return voter_steps.cancelled(state)


def _check_size(state: PartitionState, replicas: Sequence[int], *, may_resize: bool) -> None:
    """See that a reassignment has as many replicas as there are, or will be when the one that goes on is done."""
    settled, count = len(wanted_replicas(state)), len(replicas)
    if not may_resize and count != settled:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {settled} to {count}",
        )


def _before(state: PartitionState) -> tuple[int, ...]:
    """Return the replicas without those that a reassignment is adding, or was when another one took its place."""
    return tuple(replica for replica in state.replicas if replica not in state.adding_replicas)


def _begun(state: PartitionState, target: tuple[int, ...]) -> PartitionState:
    """Return the state in which a reassignment begins; who was to come and is no longer is both added and removed.

    Those who come and who go are in ascending order, as in Kafka.
    """
    before = _before(state)
    removing = tuple(sorted({*state.replicas}.difference(target)))
    replicas = target + removing
    adding = tuple(sorted({*replicas}.difference(before)))
    return attrs.evolve(state, replicas=replicas, adding_replicas=adding, removing_replicas=removing)


def _cancelled(state: PartitionState) -> PartitionState:
    if not state.adding_replicas and not state.removing_replicas:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    kept = _before(state)
    isr = tuple(replica for replica in state.isr if replica in kept)
    if not isr:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The reassignment cannot be cancelled: none of the replicas from before is in sync.",
        )
    return attrs.evolve(state, replicas=kept, isr=isr, adding_replicas=(), removing_replicas=())
