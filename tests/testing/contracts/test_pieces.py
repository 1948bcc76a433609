"""Long requests are cut into pieces and their answers joined: nothing lost, nothing twice, no piece too large."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.contracts.pieces import COPIES_MAX, LOOKED_AT_MAX, ListPieces
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from odradek.kernel.wire.messages.api_23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from odradek.kernel.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

EPOCHS = ListPieces("topics.partitions", answers=["topics.partitions"], items_max=4)

shapes = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 11)), max_size=6)


def request_of(shape: list[tuple[str, int]]) -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(
                topic=name, partitions=[OffsetForLeaderPartition(partition=index) for index in range(count)]
            )
            for name, count in shape
        ]
    )


def answer_to(request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[EpochEndOffset(partition=part.partition) for part in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def flat(answer: OffsetForLeaderEpochResponse) -> list[tuple[str, int]]:
    return [(topic.topic, part.partition) for topic in answer.topics for part in topic.partitions]


@given(shapes)
def test_the_joined_answer_is_that_of_the_whole_request(shape: list[tuple[str, int]]) -> None:
    request = request_of(shape)
    pieces = [piece for piece in EPOCHS.split(request) if piece is not None]
    answer = answer_to(pieces[0])
    for piece in pieces[1:]:
        EPOCHS.join(answer, answer_to(piece))

    assert all(sum(len(topic.partitions) for topic in piece.topics) <= 4 for piece in pieces)
    assert flat(answer_to(request)) == flat(answer)
    if len({name for name, _ in shape}) == len(shape):
        assert answer_to(request) == answer, "halves of a topic are one again"
    assert request_of(shape) == request, "the request is left as it was"


def test_a_list_three_levels_down_is_cut() -> None:
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=list(range(10)))
    request = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=7, topics=[topic])])
    pieces = ListPieces("markers.topics.partition_indexes", answers=["markers.topics.partitions"], items_max=4)

    cut = [
        [topic.partition_indexes for marker in piece.markers for topic in marker.topics]
        for piece in pieces.split(request)
    ]

    assert cut == [[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[8, 9]]]


def test_the_same_item_twice_comes_in_one_piece_and_no_third_time() -> None:
    pieces = ListPieces("topics", answers=["topics"], items_max=2, together="name")
    names = ["a", "b", "c", "a", "a", "a", "d"]
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1) for name in names])

    cut = [[topic.name for topic in piece.topics] for piece in pieces.split(request) if piece is not None]

    assert cut == [["a", "a"], ["b", "c"], ["d"]]
    assert list(chain(*cut)).count("a") == COPIES_MAX


def test_items_of_which_none_is_there_twice_are_not_looked_at_one_by_one() -> None:
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"], together="partition")
    request = request_of([("a", 450), ("b", 50), ("c", 3)])

    found = [[len(topic.partitions) for topic in piece.topics] for piece in pieces.split(request)]

    assert found == [[200], [200], [50, 50, 3]]


def test_many_items_are_not_held_against_each_other_in_one_go() -> None:
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"], together="partition")
    steps = list(pieces.split(request_of([("a", LOOKED_AT_MAX + 1)])))

    assert steps.count(None) > LOOKED_AT_MAX
    assert [len(piece.topics[0].partitions) for piece in steps if piece is not None] == [200] * 5 + [1]


def test_a_request_without_items_is_its_own_piece() -> None:
    request = request_of([])

    assert [request] == list(EPOCHS.split(request))


def test_the_first_error_of_a_piece_stands_for_the_request() -> None:
    pieces = ListPieces("members", answers=["members"])

    class Answer:
        def __init__(self, error_code: int) -> None:
            self.members: list[int] = []
            self.error_code = error_code

    first = Answer(0)
    pieces.join(first, Answer(25))
    pieces.join(first, Answer(16))

    assert first.error_code == 25
