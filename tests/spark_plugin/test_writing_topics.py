"""What the sink writes of rows, without Spark: what a consumer then reads; and what it refuses, with a row's number."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.errors import BrokerError, RecordTooLargeError, TransactionAbortedError
from odradek.client.partitioners import partition_for_key
from odradek.kernel.peers.errors import UnsupportedVersionError
from odradek.spark_plugin.client.cache import client_for
from odradek.spark_plugin.client.clock import SystemPausingClock
from odradek.spark_plugin.errors import OptionError, SchemaError
from odradek.spark_plugin.worker import TaskIdentity
from odradek.spark_plugin.writing.transaction_steps import Ask, Coordination, run_steps
from odradek.spark_plugin.writing.transactions import WrittenPartition, is_job_over
from odradek.spark_plugin.writing.write_rows import BadRowError
from odradek.spark_plugin.writing.write_task import TaskWriter, WritePlan, abort, commit, plan_write, write_partition
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.spark_plugin.topic_kit import CODECS, Kit, Row, open_kit

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ORIGIN = pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
TYPES: dict[str, tuple[str, pa.DataType]] = {
    "key": ("binary", pa.binary()),
    "value": ("binary", pa.binary()),
    "topic": ("string", pa.string()),
    "partition": ("int", pa.int32()),
    "headers": ("array<struct<key:string,value:binary>>", HEADERS),
    "timestamp": ("timestamp", pa.timestamp("us", "UTC")),
    "other": ("bigint", pa.int64()),
    "deadLetterReason": ("string", pa.string()),
    "deadLetterOrigin": ("struct<topic:string,partition:int,offset:bigint>", ORIGIN),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    settings = {"num.partitions": 3, "transaction.state.log.replication.factor": 1, "log.retention.ms": -1}
    with running_broker(settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def kit(broker: RunningBroker) -> Iterator[Kit]:
    with open_kit(broker.bootstrap) as kit:
        yield kit


def plan_of(kit: Kit, columns: Sequence[str], options: Mapping[str, str], *, is_overwriting: bool = False) -> WritePlan:
    schema = [(name, TYPES[name][0]) for name in columns]
    given_options = {"kafka.bootstrap.servers": kit.bootstrap, **options}
    plan = plan_write(given_options, schema, is_stream=False, is_overwriting=is_overwriting)
    copy: WritePlan = pickle.loads(pickle.dumps(plan))  # as Spark carries it to workers
    return copy


def batch_of(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    arrays = [pa.array([row[place] for row in rows], TYPES[name][1]) for place, name in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def write(
    kit: Kit, columns: Sequence[str], rows: Sequence[Sequence[Any]], options: Mapping[str, str]
) -> WrittenPartition:
    plan = plan_of(kit, columns, options)
    written = write_partition(plan, iter([batch_of(columns, rows)]))
    commit(plan, [written])
    return written


def keys_and_values(rows: Sequence[Row]) -> list[tuple[bytes | None, bytes | None]]:
    return [(row[0], row[1]) for row in rows]


ROWS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=60),
        st.none() | st.integers(0, 2),
        st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
        st.none() | st.integers(0, 1_700_000_000_000).map(lambda number: number * 1_000),
    ),
    max_size=30,
)


@settings(max_examples=12)
@given(rows=ROWS, codec=st.sampled_from(CODECS), exactly_once=st.booleans(), cut=st.integers(0, 30))
def test_rows_are_read_as_they_were_written(
    kit: Kit, rows: list[tuple[Any, ...]], codec: str, exactly_once: bool, cut: int
) -> None:
    topic = kit.new_topic(3)
    columns = ["other", "timestamp", "headers", "partition", "value", "key"]
    arranged = [(0, row[4], row[3], row[2], row[1], row[0]) for row in rows]
    options = {
        "topic": topic,
        "kafka.compression.type": codec,
        "exactlyOnce": str(exactly_once).lower(),
        "kafka.batch.size": "200",
    }
    plan = plan_of(kit, columns, options)
    whole = batch_of(columns, arranged)
    written = write_partition(plan, iter([whole.slice(0, cut), whole.slice(cut)]))  # slices, maybe empty ones
    commit(plan, [written])
    found = kit.consumed(topic, is_read_committed=True)

    assert written.rows_count == len(rows) == len(found)
    plain = [
        (row[0], row[1], [{"key": key, "value": value} for key, value in row[3] or ()] or None, row[4]) for row in rows
    ]
    read = [(row[0], row[1], row[7], row[5]) for row in found]
    assert sorted([one[:3] for one in plain], key=repr) == sorted([one[:3] for one in read], key=repr)
    for partition in range(3):
        there = [one for one, row in zip(read, found, strict=True) if row[3] == partition]
        keyed = [
            one
            for one, row in zip(plain, rows, strict=True)
            if row[2] == partition
            or (row[2] is None and row[0] is not None and partition_for_key(row[0], 3) == partition)
        ]
        left = iter(there)
        assert all(any(_same(one, other) for other in left) for one in keyed), "the order within a partition is kept"


def _same(given_row: tuple[Any, ...], read: tuple[Any, ...]) -> bool:
    return given_row[:3] == read[:3] and (given_row[3] is None or given_row[3] == read[3])


def test_a_column_names_topics_unless_the_option_does(kit: Kit) -> None:
    first, second, third = (kit.new_topic(1) for _ in range(3))
    rows = [(b"1", first), (b"2", second), (b"3", first)]
    write(kit, ["value", "topic"], rows, {})
    write(kit, ["value", "topic"], [(b"4", None)], {"topic": third})

    assert [row[1] for row in kit.consumed(first)] == [b"1", b"3"]
    assert [row[1] for row in kit.consumed(second)] == [b"2"]
    assert [row[1] for row in kit.consumed(third)] == [b"4"]


def test_a_column_of_topics_may_be_written_exactly_once(kit: Kit) -> None:
    first, second = kit.new_topic(1), kit.new_topic(1)
    write(kit, ["value", "topic"], [(b"1", first), (b"2", second)], {"exactlyOnce": "true"})

    assert [row[1] for name in (first, second) for row in kit.consumed(name, is_read_committed=True)] == [b"1", b"2"]


@pytest.mark.parametrize("exactly_once", ["false", "true"])
def test_rows_with_a_reason_are_dead_letters_and_the_others_are_as_they_were(kit: Kit, exactly_once: str) -> None:
    topic, dead = kit.new_topic(2), kit.new_topic(1)
    rows = [
        (b"k1", b"good", 1, [("own", b"1")], None, None),
        (b"k2", b"bad", 1, [("own", b"2")], "no JSON", {"topic": "orders", "partition": 3, "offset": 17}),
        (b"k3", b"worse", None, None, "no such customer", {"topic": None, "partition": None, "offset": None}),
        (None, b"fine", 0, None, None, {"topic": "orders", "partition": 3, "offset": 18}),
    ]
    columns = ["key", "value", "partition", "headers", "deadLetterReason", "deadLetterOrigin"]
    written = write(
        kit,
        columns,
        rows,
        {"topic": topic, "deadLetterTopic": dead, "deadLetterGroup": "billing", "exactlyOnce": exactly_once},
    )
    live = {row[1]: row for row in kit.consumed(topic, is_read_committed=True)}
    letters = kit.consumed(dead, is_read_committed=True)
    told = [{header["key"]: header["value"] for header in row[7]} for row in letters]

    assert written is not None
    assert {value: (row[0], row[3]) for value, row in live.items()} == {b"good": (b"k1", 1), b"fine": (None, 0)}
    assert live[b"good"][7] == [{"key": "own", "value": b"1"}]
    assert keys_and_values(letters) == [(b"k2", b"bad"), (b"k3", b"worse")]
    assert all(headers.pop("odradek.dead.timestamp").isdigit() for headers in told)
    assert told == [
        {
            "own": b"2",
            "__dlq.errors.topic": b"orders",
            "__dlq.errors.partition": b"3",
            "__dlq.errors.offset": b"17",
            "__dlq.errors.group": b"billing",
            "__dlq.errors.delivery.count": b"1",
            "__dlq.errors.message": b"no JSON",
        },
        {
            "__dlq.errors.group": b"billing",
            "__dlq.errors.delivery.count": b"1",
            "__dlq.errors.message": b"no such customer",
        },
    ]


def test_dead_letters_of_rows_that_name_their_topics_leave_these(kit: Kit) -> None:
    topic, dead = kit.new_topic(1), kit.new_topic(1)
    rows = [(b"1", topic, None), (b"2", topic, "why"), (b"3", None, "why not")]
    write(kit, ["value", "topic", "deadLetterReason"], rows, {"deadLetterTopic": dead})

    assert [row[1] for row in kit.consumed(topic)] == [b"1"]
    assert [row[1] for row in kit.consumed(dead)] == [b"2", b"3"]


def test_dead_letters_are_of_the_time_of_writing_so_that_they_are_kept_from_then_on(kit: Kit) -> None:
    """By the time of the row retention could take a letter as soon as it is there, and `odradek dlq purge --before`."""
    topic, dead = kit.new_topic(1), kit.new_topic(1)
    rows = [(b"1", 5_000_000, None), (b"2", 6_000_000, "why")]
    write(kit, ["value", "timestamp", "deadLetterReason"], rows, {"topic": topic, "deadLetterTopic": dead})
    (letter,) = kit.consumed(dead)
    (told,) = [header["value"] for header in letter[7] if header["key"] == "odradek.dead.timestamp"]

    assert [row[5] for row in kit.consumed(topic)] == [5_000_000]
    assert letter[5] == int(told) * 1_000


def test_without_the_option_a_reason_is_a_column_like_any_other(kit: Kit) -> None:
    topic = kit.new_topic(1)
    write(kit, ["value", "deadLetterReason"], [(b"1", "why")], {"topic": topic})

    assert [row[1] for row in kit.consumed(topic)] == [b"1"]


def test_a_bad_row_beside_a_dead_letter_is_told_of_with_its_number(kit: Kit) -> None:
    topic, dead = kit.new_topic(1), kit.new_topic(1)

    with pytest.raises(BadRowError, match="row 2 names partition 7"):
        write(
            kit,
            ["value", "partition", "deadLetterReason"],
            [(b"1", 0, None), (b"2", 0, "why"), (b"3", 7, None)],
            {"topic": topic, "deadLetterTopic": dead},
        )


def test_a_missing_topic_is_created_where_the_broker_does_so(kit: Kit) -> None:
    write(kit, ["value"], [(b"1",)], {"topic": "made-by-writing"})

    assert keys_and_values(kit.consumed("made-by-writing")) == [(None, b"1")]


def test_a_missing_topic_is_told_of_where_the_broker_does_not() -> None:
    with (
        running_broker({"auto.create.topics.enable": "false"}) as broker,
        open_kit(broker.bootstrap) as kit,
        pytest.raises(BrokerError, match=r"'missing' does not exist.*auto\.create\.topics\.enable=false"),
    ):
        write(kit, ["value"], [(b"1",)], {"topic": "missing"})


@pytest.mark.parametrize("partitioner", ["crc32", "roundrobin"])
def test_other_partitioners_may_be_chosen(kit: Kit, partitioner: str) -> None:
    import zlib

    topic = kit.new_topic(3)
    rows = [(b"k%d" % number, b"") for number in range(9)]
    write(kit, ["key", "value"], rows, {"topic": topic, "partitioner": partitioner})
    found = {row[0]: row[3] for row in kit.consumed(topic)}

    wanted = {
        key: number % 3 if partitioner == "roundrobin" else zlib.crc32(key) % 3 for number, (key, _) in enumerate(rows)
    }
    assert found == wanted


def test_rows_without_timestamp_get_the_time_of_writing(kit: Kit) -> None:
    topic = kit.new_topic(1)
    write(kit, ["value", "timestamp"], [(b"1", None), (b"2", 5_000_000)], {"topic": topic})
    times = [row[5] for row in kit.consumed(topic)]

    assert times[1] == 5_000_000
    assert times[0] > 1_700_000_000_000_000


def test_records_that_a_topic_refuses_together_go_alone(kit: Kit) -> None:
    topic = kit.new_topic(1, max_message_bytes="2000")
    rows = [(b"%04d" % number * 20,) for number in range(500)]
    write(kit, ["value"], rows, {"topic": topic})

    assert [row[1] for row in kit.consumed(topic)] == [row[0] for row in rows]


def test_a_record_that_a_topic_refuses_is_told_of_with_its_row(kit: Kit) -> None:
    topic = kit.new_topic(1, max_message_bytes="2000")
    rows = [(b"small",)] * 7 + [(b"x" * 3_000,)] + [(b"small",)] * 7

    with pytest.raises(RecordTooLargeError, match=r"row 7 is a record of .* bytes.*max\.message\.bytes"):
        write(kit, ["value"], rows, {"topic": topic})


@pytest.mark.parametrize(
    ("columns", "row", "error", "text"),
    [
        (["value", "topic"], (b"v", None), BadRowError, "row 3 has no topic"),
        (["value", "partition"], (b"v", 3), BadRowError, "row 3 names partition 3 of topic .* 3 partitions, 0 to 2"),
        (["value", "partition"], (b"v", -1), BadRowError, "row 3 names partition -1"),
        (["value"], (b"x" * 1_048_576,), RecordTooLargeError, r"row 3 is a record of about 10485\d\d bytes"),
    ],
)
def test_a_bad_row_is_told_of_with_its_number(
    kit: Kit, columns: list[str], row: tuple[Any, ...], error: type[Exception], text: str
) -> None:
    topic = kit.new_topic(3)
    good = (b"v", topic) if "topic" in columns else (b"v", 0)
    options = {} if "topic" in columns else {"topic": topic}
    plan = plan_of(kit, columns, options)
    batches = [batch_of(columns, [good[: len(columns)]] * 2), batch_of(columns, [good[: len(columns)], row])]

    with pytest.raises(error, match=text):
        write_partition(plan, iter(batches))


def test_what_was_written_of_a_failed_batch_is_not_seen_exactly_once(kit: Kit) -> None:
    topic = kit.new_topic(3)
    plan = plan_of(kit, ["value", "partition"], {"topic": topic, "exactlyOnce": "true"})
    good = write_partition(plan, iter([batch_of(["value", "partition"], [(b"a", 0)])]))
    bad = [batch_of(["value", "partition"], [(b"b", 1)]), batch_of(["value", "partition"], [(b"c", 9)])]

    with pytest.raises(BadRowError):
        write_partition(plan, iter(bad))
    abort(plan, [good])
    assert len(kit.consumed(topic)) == 0 or kit.consumed(topic, is_read_committed=True) == []
    write(kit, ["value", "partition"], [(b"d", 0), (b"e", 1)], {"topic": topic, "exactlyOnce": "true"})
    assert [row[1] for row in kit.consumed(topic, is_read_committed=True)] == [b"d", b"e"]


def test_what_a_task_wrote_that_never_told_is_aborted_with_the_batch(kit: Kit) -> None:
    topic = kit.new_topic(2)
    plan = plan_of(kit, ["value", "partition"], {"topic": topic, "exactlyOnce": "true"})
    write_partition(plan, iter([batch_of(["value", "partition"], [(b"a", 0), (b"b", 1)])]))
    abort(plan, [], silent=[0, 1])  # Spark killed the first one, as another had failed; the second one never began
    write(kit, ["value", "partition"], [(b"c", 0), (b"d", 1)], {"topic": topic})

    assert [row[1] for row in kit.consumed(topic, is_read_committed=True)] == [b"c", b"d"]
    assert kit.admin.list_transactions(pattern=f"odradek-{plan.job_id}-1-.*") == [], "nobody needed it"


@pytest.mark.parametrize("attempt", [0, 3, 4, 6])
def test_what_a_late_attempt_wrote_that_never_told_is_aborted_too(kit: Kit, attempt: int) -> None:
    """With `spark.task.maxFailures` above 4 there are more attempts than transactional ids."""
    topic = kit.new_topic(1)
    plan = plan_of(kit, ["value"], {"topic": topic, "exactlyOnce": "true"})
    identity = TaskIdentity(None, None, None, 0, attempt, 1)
    TaskWriter(plan, client_for(plan.client), SystemPausingClock(), identity).write([batch_of(["value"], [(b"a",)])])
    abort(plan, [], silent=[0])

    assert kit.admin.list_transactions(pattern=f"odradek-{plan.job_id}-0-.*", states=["Ongoing"]) == []


@pytest.mark.parametrize("attempt", [1, 4, 6])
def test_what_earlier_attempts_left_open_is_aborted_when_a_later_one_is_committed(kit: Kit, attempt: int) -> None:
    topic = kit.new_topic(1)
    plan = plan_of(kit, ["value"], {"topic": topic, "exactlyOnce": "true"})
    written = []
    for number in range(attempt + 1):
        identity = TaskIdentity(None, None, None, 0, number, 1)
        writer = TaskWriter(plan, client_for(plan.client), SystemPausingClock(), identity)
        written.append(writer.write([batch_of(["value"], [(b"%d" % number,)])]))
    commit(plan, written[-1:])

    assert kit.admin.list_transactions(pattern=f"odradek-{plan.job_id}-0-.*", states=["Ongoing"]) == []
    assert [row[1] for row in kit.consumed(topic, is_read_committed=True)] == [b"%d" % attempt]


def test_a_killed_task_that_begins_after_the_abort_writes_nothing(kit: Kit) -> None:
    topic = kit.new_topic(2)
    plan = plan_of(kit, ["value", "partition"], {"topic": topic, "exactlyOnce": "true"})
    abort(plan, [], silent=[0, 1])  # Spark does not wait for the end of those that it kills

    with pytest.raises(TransactionAbortedError, match="another task of this job failed"):
        write_partition(plan, iter([batch_of(["value", "partition"], [(b"a", 0), (b"b", 1)])]))
    write(kit, ["value", "partition"], [(b"c", 0), (b"d", 1)], {"topic": topic, "exactlyOnce": "true"})
    assert [row[1] for row in kit.consumed(topic, is_read_committed=True)] == [b"c", b"d"]


def test_a_broker_too_old_to_describe_transactions_is_written_to_all_the_same() -> None:
    def ask(one: Ask) -> Any:
        raise UnsupportedVersionError("the broker does not answer DescribeTransactions")

    coordination = Coordination(lambda: 0, is_v2=False, transaction_timeout_ms=1_000)

    assert run_steps(is_job_over(coordination, "odradek-job-over"), ask, lambda _ms: None) is False


def test_acknowledgement_of_leaders_alone_may_be_chosen(kit: Kit) -> None:
    topic = kit.new_topic(1)
    write(kit, ["value"], [(b"1",)], {"topic": topic, "kafka.acks": "1"})

    assert len(kit.consumed(topic)) == 1


def test_no_rows_write_nothing_and_ask_nobody() -> None:
    with running_broker() as broker:
        bootstrap = broker.bootstrap
    options = {"kafka.bootstrap.servers": bootstrap, "topic": "t", "exactlyOnce": "true"}
    plan = plan_write(options, [("value", "string")], is_stream=True, is_overwriting=True)
    written = write_partition(plan, iter([]))  # no broker is there any more
    commit(plan, [written])
    abort(plan, [written])

    assert (written.rows_count, written.producer) == (0, None)


@pytest.mark.parametrize(
    ("columns", "options", "error", "text"),
    [
        (["value"], {}, SchemaError, "topic option required when no 'topic' attribute is present"),
        (["key"], {"topic": "t"}, SchemaError, "Required attribute 'value' not found"),
        (["value"], {"topic": "t", "kafka.batch.size": "many"}, OptionError, "batch.size"),
        (["value"], {"topic": "t", "kafka.compression.type": "rar"}, OptionError, "compression.type"),
        (["value"], {"topic": "t", "kafka.acks": "1", "exactlyOnce": "true"}, OptionError, r"needs kafka\.acks=all"),
        (["value"], {"topic": "t", "kafka.key.serializer": "x"}, OptionError, r"key\.serializer"),
        (["value"], {"topic": "t", "deadLetterTopic": "d"}, SchemaError, "needs a column 'deadLetterReason'"),
        (["value"], {"topic": "t", "deadLetterGroup": "g"}, OptionError, "option 'deadLetterTopic'"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_task(
    kit: Kit, columns: list[str], options: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        plan_of(kit, columns, options)


def test_a_topic_is_not_overwritten(kit: Kit) -> None:
    with pytest.raises(OptionError, match="Save mode Overwrite not allowed for Kafka"):
        plan_of(kit, ["value"], {"topic": "t"}, is_overwriting=True)


def test_an_exactly_once_stream_needs_to_know_its_task(kit: Kit) -> None:
    options = {"kafka.bootstrap.servers": kit.bootstrap, "topic": kit.new_topic(1), "exactlyOnce": "true"}
    plan = plan_write(options, [("value", "binary")], is_stream=True, is_overwriting=False)

    with pytest.raises(OptionError, match="Spark does not tell this task which batch of which query it writes"):
        write_partition(plan, iter([batch_of(["value"], [(b"v",)])]))
