"""Shell: TxnOffsetCommit (key 28): how far a group has got, if the producer's transaction commits.

The transaction coordinator is asked first whether the producer may write to the group's partition of the offsets topic;
with transaction version 2 it takes that partition into the transaction.

*Source:* KIP-98, KIP-447 (generations), KIP-890 (verification; adding by committing, from version 5 on).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import (
    PENDING,
    ZERO_ID,
    Admission,
    ErrorCode,
    KafkaError,
    ListPieces,
    ProducerIdentity,
    TopicPartition,
)
from odradek.kernel.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

from ..offsets import Committer, TopicCommit
from .common import NO_GROUP_ID, GroupHandler, Reply
from .partitions import SortedTopics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_28_txn_offset_commit import TxnOffsetCommitRequest

    from ..group import Decided
    from ..shard import GroupShard
    from .partitions import TopicCodes

OFFSETS_TOPIC: Final = "__consumer_offsets"

_VERIFIES_KEY: Final = "transaction.partition.verification.enable"
_ADDS_FROM: Final = 5
_NEVER: Final = 1 << 15
_OLDER_CODES: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (2, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ErrorCode.TRANSACTION_ABORTABLE: (4, ErrorCode.INVALID_TXN_STATE),
    ErrorCode.PRODUCER_FENCED: (_NEVER, ErrorCode.INVALID_PRODUCER_EPOCH),
}
"""Codes to the version from which on producers are told them here, and what the others are told instead."""


class TxnOffsetCommitHandler(GroupHandler):
    """Answers TxnOffsetCommit."""

    api_key = 28
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"])

    def handle(self, request: TxnOffsetCommitRequest, context: RequestContext) -> Answer:
        """Answer once the offsets are in the log, waiting there for the end of the transaction."""
        topics = self._sorted(request)
        if not topics.known:
            return _response(topics.refused)
        reply = Reply(
            context,
            lambda code, detail: _response(topics.refused_all(_fit(context.api_version, code))),
            lambda codes: _response(topics.merged(codes)),
        )
        if request.group_id == NO_GROUP_ID:
            reply.fail(KafkaError(ErrorCode.INVALID_GROUP_ID))
            return PENDING
        self._admit(request, context, topics, reply)
        return PENDING

    def _admit(
        self,
        request: TxnOffsetCommitRequest,
        context: RequestContext,
        topics: SortedTopics[TxnOffsetCommitRequestPartition],
        reply: Reply,
    ) -> None:
        """Have the producer admitted, if there is somebody to ask, and then commit.

        The partition notes before that it asks: should the transaction end while the answer is on its way, what comes
        behind its end belongs to no transaction, and is refused.
        """
        partition = self._runtime.partition_for(request.group_id)
        producer = ProducerIdentity(request.producer_id, request.producer_epoch)
        may_add = context.api_version >= _ADDS_FROM
        commit = partial(self._runtime.submit, partition, _commit(request, context, topics), reply, producer=producer)
        transactions = self._broker.transactions
        if transactions is None or not (may_add or self._broker.config.get_bool(_VERIFIES_KEY)):
            commit()
            return
        try:
            verified = self._runtime.begin_verification(partition, producer, may_add=may_add)
        except KafkaError as error:
            reply.fail(error)
            return
        where = TopicPartition(OFFSETS_TOPIC, partition)

        def done(codes: Mapping[TopicPartition, ErrorCode]) -> None:
            code = codes[where]
            if code is ErrorCode.NONE:
                commit(verified=verified)
            else:
                # Old clients do not send again after NETWORK_EXCEPTION; after this one all do, without a new look-up.
                is_lost = code is ErrorCode.NETWORK_EXCEPTION
                reply.fail(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_lost else code))

        admission = Admission(
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            partitions=(where,),
            may_add=may_add,
        )
        transactions.admit(admission, done)

    def _sorted(self, request: TxnOffsetCommitRequest) -> SortedTopics[TxnOffsetCommitRequestPartition]:
        topics: SortedTopics[TxnOffsetCommitRequestPartition] = SortedTopics()
        for topic in request.topics:
            view = self._broker.cluster.topic(topic.name)
            if view is None:
                topics.add_unknown(topic.name, ZERO_ID, topic.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                topics.add(view, topic.partitions)
        return topics

    def error_response(
        self, request: TxnOffsetCommitRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        topics: SortedTopics[TxnOffsetCommitRequestPartition] = SortedTopics()
        for topic in request.topics:
            topics.add_unknown(topic.name, ZERO_ID, topic.partitions, _fit(context.api_version, code))
        return _response(topics.refused)


def _commit(
    request: TxnOffsetCommitRequest, context: RequestContext, topics: SortedTopics[TxnOffsetCommitRequestPartition]
) -> Callable[[GroupShard, int], Decided]:
    """Return the operation that writes the offsets."""
    committer = Committer(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        api_version=context.api_version,
        is_transactional=True,
    )
    commits = [TopicCommit(topic.name, topic.topic_id, topic.partitions) for topic in topics.known]
    return lambda shard, now_ms: shard.offsets.commit(committer, commits, now_ms)


def _fit(version: int, code: ErrorCode) -> ErrorCode:
    """Return a code as clients of a version know it."""
    known_from, older = _OLDER_CODES.get(code, (0, code))
    return code if version >= known_from else older


def _response(topics: Iterable[TopicCodes]) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=number, error_code=code)
                    for number, code in topic.codes
                ],
            )
            for topic in topics
        ]
    )
