"""The inputs: options of readers and streams, and frames to write. `T` in a text is the name of the topic of facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

Options: TypeAlias = Mapping[str, str | None]
"""What is put over `subscribe` and the broker's address; None takes an option away."""

FACTS = "facts"
"""Two partitions of 1,000 records each."""
ODD = "odd"
"""Two partitions with all that a record may be, in every codec, with transactions."""
RECORDS = 1000
FIRST_MS = 1_700_000_000_000
"""The timestamp of the first record of each partition; the next ones are a second apart."""
FUTURE_MS = "4102444800000"


def offsets(zero: int, one: int, topic: str = FACTS) -> str:
    """Return offsets of a topic of two partitions as an option has them."""
    return json.dumps({topic: {"0": zero, "1": one}}, separators=(",", ":"))


BATCH: Mapping[str, Options] = {
    # what to read
    "no subscribe, assign or subscribePattern": {"subscribe": None},
    "subscribe and assign": {"assign": '{"facts":[0]}'},
    "no bootstrap servers": {"kafka.bootstrap.servers": None},
    "bootstrap servers that are none": {"kafka.bootstrap.servers": "nonsense"},
    "subscribe to nothing": {"subscribe": ""},
    "subscribe to a comma": {"subscribe": ","},
    "subscribe with blanks": {"subscribe": " facts , odd "},
    "assign cut JSON": {"subscribe": None, "assign": '{"facts":'},
    "assign one partition": {"subscribe": None, "assign": '{"facts":[1]}'},
    "assign a partition that is not there": {"subscribe": None, "assign": '{"facts":[9]}'},
    "subscribePattern": {"subscribe": None, "subscribePattern": "fac.*"},
    "subscribePattern that matches a part": {"subscribe": None, "subscribePattern": "fac"},
    "subscribePattern that is none": {"subscribe": None, "subscribePattern": "["},
    "subscribePattern without match": {"subscribe": None, "subscribePattern": "nothing-like-it.*"},
    "a topic that is not there": {"subscribe": "no-such-topic-here"},
    # from where to where
    "startingOffsets latest": {"startingOffsets": "latest"},
    "startingOffsets earliest": {"startingOffsets": "earliest"},
    "startingOffsets EARLIEST": {"startingOffsets": "EARLIEST"},
    "startingOffsets -1": {"startingOffsets": offsets(-1, -2)},
    "startingOffsets -2": {"startingOffsets": offsets(-2, 5)},
    "startingOffsets -3": {"startingOffsets": offsets(-3, 5)},
    "startingOffsets a word": {"startingOffsets": "word"},
    "startingOffsets cut JSON": {"startingOffsets": '{"facts":'},
    "startingOffsets lack a partition": {"startingOffsets": '{"facts":{"0":0}}'},
    "startingOffsets with a partition too many": {"startingOffsets": '{"facts":{"0":0,"1":0,"7":0}}'},
    "startingOffsets of another topic": {"startingOffsets": '{"other":{"0":0}}'},
    "startingOffsets beyond the end": {"startingOffsets": offsets(99999, 0)},
    "startingOffsets beyond the end, failOnDataLoss false": {
        "startingOffsets": offsets(99999, 0),
        "failOnDataLoss": "false",
    },
    "startingOffsets at the end": {"startingOffsets": offsets(1000, 999)},
    "endingOffsets earliest": {"endingOffsets": "earliest"},
    "endingOffsets latest": {"endingOffsets": "latest"},
    "endingOffsets -2": {"endingOffsets": offsets(-2, -1)},
    "endingOffsets -1": {"endingOffsets": offsets(-1, 5)},
    "endingOffsets beyond the end": {"endingOffsets": offsets(99999, 0), "kafkaConsumer.pollTimeoutMs": "3000"},
    "start after end": {"startingOffsets": offsets(50, 0), "endingOffsets": offsets(10, 100)},
    "start and end": {"startingOffsets": offsets(50, 0), "endingOffsets": offsets(60, 100)},
    "options in lower case": {"startingoffsets": offsets(90, 90)},
    # by time
    "startingTimestamp": {"startingTimestamp": str(FIRST_MS + 500_000)},
    "startingTimestamp abc": {"startingTimestamp": "abc"},
    "startingTimestamp 0": {"startingTimestamp": "0"},
    "startingTimestamp in the future": {"startingTimestamp": FUTURE_MS},
    "startingTimestamp in the future, strategy latest": {
        "startingTimestamp": FUTURE_MS,
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "startingOffsetsByTimestampStrategy a word": {
        "startingTimestamp": "0",
        "startingOffsetsByTimestampStrategy": "word",
    },
    "endingTimestamp": {"endingTimestamp": str(FIRST_MS + 500_000)},
    "endingTimestamp in the future": {"endingTimestamp": FUTURE_MS},
    "startingOffsetsByTimestamp": {"startingOffsetsByTimestamp": offsets(FIRST_MS + 999_000, FIRST_MS)},
    "startingOffsetsByTimestamp cut JSON": {"startingOffsetsByTimestamp": "{"},
    "startingOffsetsByTimestamp lack a partition": {"startingOffsetsByTimestamp": '{"facts":{"0":0}}'},
    "endingOffsetsByTimestamp": {"endingOffsetsByTimestamp": offsets(FIRST_MS + 1_000, FIRST_MS + 2_000)},
    "a timestamp beats offsets": {
        "startingTimestamp": str(FIRST_MS + 990_000),
        "startingOffsetsByTimestamp": offsets(0, 0),
        "startingOffsets": offsets(0, 0),
    },
    "offsets by timestamp beat offsets": {
        "startingOffsetsByTimestamp": offsets(FIRST_MS + 990_000, FIRST_MS + 990_000),
        "startingOffsets": offsets(0, 0),
    },
    # how
    "failOnDataLoss maybe": {"failOnDataLoss": "maybe"},
    "failOnDataLoss FALSE": {"failOnDataLoss": "FALSE"},
    "includeHeaders maybe": {"includeHeaders": "maybe"},
    "minPartitions abc": {"minPartitions": "abc"},
    "minPartitions 0": {"minPartitions": "0"},
    "minPartitions 8": {"minPartitions": "8"},
    "minPartitions 3": {"minPartitions": "3"},
    "minPartitions 7 over unequal ranges": {"startingOffsets": offsets(0, 900), "minPartitions": "7"},
    "maxRecordsPerPartition 30": {"maxRecordsPerPartition": "30"},
    "maxRecordsPerPartition 0": {"maxRecordsPerPartition": "0"},
    "maxOffsetsPerTrigger on a batch": {"maxOffsetsPerTrigger": "5"},
    "fetchOffset.numRetries -1": {"fetchOffset.numRetries": "-1"},
    "an option that nobody knows": {"fooBar": "1"},
    "a kafka option that nobody knows": {"kafka.foo.bar": "1"},
    "kafka.group.id": {"kafka.group.id": "mine"},
    "groupIdPrefix": {"groupIdPrefix": "mine"},
    "kafka.auto.offset.reset": {"kafka.auto.offset.reset": "earliest"},
    "kafka.key.deserializer": {"kafka.key.deserializer": "x"},
    "kafka.value.deserializer": {"kafka.value.deserializer": "x"},
    "kafka.enable.auto.commit": {"kafka.enable.auto.commit": "true"},
    "kafka.interceptor.classes": {"kafka.interceptor.classes": "x"},
    "kafka.isolation.level a word": {"kafka.isolation.level": "word"},
    "kafka.max.poll.records": {"kafka.max.poll.records": "7"},
    # all that a record may be
    "odd records": {"subscribe": ODD},
    "odd records with headers": {"subscribe": ODD, "includeHeaders": "true"},
    "odd records that are committed": {
        "subscribe": ODD,
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    },
    "odd records, cut ranges": {
        "subscribe": ODD,
        "startingOffsets": offsets(3, 11, ODD),
        "endingOffsets": offsets(17, 19, ODD),
    },
}
"""What batches read with."""

EARLIEST: Options = {"startingOffsets": "earliest"}
STREAM: Mapping[str, Options] = {
    "endingOffsets": {"endingOffsets": "latest"},
    "endingTimestamp": {"endingTimestamp": "1", **EARLIEST},
    "endingOffsetsByTimestamp": {"endingOffsetsByTimestamp": '{"facts":{"0":1}}'},
    "maxOffsetsPerTrigger abc": {"maxOffsetsPerTrigger": "abc"},
    "maxOffsetsPerTrigger 0": {"maxOffsetsPerTrigger": "0", **EARLIEST},
    "maxOffsetsPerTrigger -1": {"maxOffsetsPerTrigger": "-1", **EARLIEST},
    "maxOffsetsPerTrigger 600": {"maxOffsetsPerTrigger": "600", **EARLIEST},
    "maxOffsetsPerTrigger 7 over unequal ranges": {
        "maxOffsetsPerTrigger": "7",
        "startingOffsets": offsets(990, 970),
    },
    "minOffsetsPerTrigger over maxOffsetsPerTrigger": {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"},
    "maxTriggerDelay abc": {"minOffsetsPerTrigger": "9", "maxTriggerDelay": "abc"},
    "by default from the end": {},
    "startingOffsets earliest": EARLIEST,
    "startingOffsets given": {"startingOffsets": offsets(400, -1)},
    "startingTimestamp of a stream": {"startingTimestamp": str(FIRST_MS + 900_000)},
    "assign one partition of a stream": {"subscribe": None, "assign": '{"facts":[1]}', **EARLIEST},
    "a topic that is not there": {"subscribe": "no-such-topic-here", **EARLIEST},
    "minPartitions of a stream": {"minPartitions": "6", **EARLIEST},
    "odd records that are committed": {
        "subscribe": ODD,
        "kafka.isolation.level": "read_committed",
        "maxOffsetsPerTrigger": "10",
        **EARLIEST,
    },
}
"""What streams read with; each runs with `availableNow` until it ends by itself."""
