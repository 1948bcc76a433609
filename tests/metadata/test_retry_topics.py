"""Which topics are made for a group's failed records when somebody asks for one of them."""

from __future__ import annotations

import uuid

import attrs
import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.errors import KafkaError
from odradek.kernel.metadata.image import MetadataImage, ResourceType, TopicImage
from odradek.kernel.metadata.retry_topics import owner_of
from odradek.kernel.metadata.topic_maker import SUFFIXES, topics_for
from odradek.kernel.retry.names import DEAD_SUFFIX, RETRY_SUFFIX, retry_topics
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic

REPLICAS = (1, 2, 3)
DEFAULT_BYTES = 1_048_588


def image_of(*auto: str, others: tuple[str, ...] = ()) -> MetadataImage:
    """Return an image of topics that have `odradek.retry.auto`, and of others."""
    partition = PartitionState(leader=1, leader_epoch=0, replicas=REPLICAS, isr=REPLICAS, partition_epoch=0)
    names = (*auto, *others)
    topics = {
        name: TopicImage(name, uuid.UUID(int=number + 1), partitions=(partition,) * 4)
        for number, name in enumerate(names)
    }
    configs: dict[tuple[int, str], dict[str, str]] = {
        (ResourceType.TOPIC, name): {"odradek.retry.auto": "true"} for name in auto
    }
    return MetadataImage(topics_by_name=topics, configs=configs)


def asked(name: str, image: MetadataImage, default_bytes: int = DEFAULT_BYTES) -> dict[str, dict[str, str | None]]:
    topics = topics_for(name, image, default_bytes)
    return {topic.name: {each.name: each.value for each in topic.configs} for topic in topics}


@pytest.mark.parametrize("name", ["orders.billing.retry", "orders.billing.dlq"])
def test_both_are_made_whichever_is_asked_for_the_dead_letters_first(name: str) -> None:
    image = image_of("orders")

    assert list(asked(name, image).items()) == [
        (
            "orders.billing.dlq",
            {
                "odradek.retry.dead.letters.of": "orders.billing.retry",
                "errors.deadletterqueue.group.enable": "true",
            },
        ),
        ("orders.billing.retry", {"odradek.retry.topic": "orders", "odradek.retry.group": "billing"}),
    ]
    assert {(topic.num_partitions, topic.replication_factor) for topic in topics_for(name, image, DEFAULT_BYTES)} == {
        (4, 3)
    }


@pytest.mark.parametrize(
    ("limit", "default_bytes", "expected"),
    [
        ("5000000", DEFAULT_BYTES, "5016384"),
        (f"{(1 << 31) - 1}", DEFAULT_BYTES, f"{(1 << 31) - 1}"),
        ("1048588", DEFAULT_BYTES, "1064972"),
        ("1000000", 300_000, "1064972"),
        ("1000", DEFAULT_BYTES, "1064972"),
        ("1000", 5_000_000, None),
        ("5000000", 5_000_000, "5016384"),
        (None, 300_000, None),
    ],
)
def test_both_take_batches_as_large_as_those_that_the_topic_was_made_to_take(
    limit: str | None, default_bytes: int, expected: str | None
) -> None:
    """And with the headers that a failed record gets, uncompressed, whatever brokers have by default."""
    image = image_of("orders")
    config = {"odradek.retry.auto": "true"} | ({} if limit is None else {"max.message.bytes": limit})
    image = attrs.evolve(image, configs={(ResourceType.TOPIC, "orders"): config})

    made = asked("orders.billing.retry", image, default_bytes).values()
    assert [config.get("max.message.bytes") for config in made] == [expected] * 2


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("orders.billing.retry", image_of(others=("orders",))),
        ("orders.billing.retry", image_of("invoices")),
        ("orders.billing", image_of("orders")),
        ("orders.retry", image_of("orders")),
        ("orders..retry", image_of("orders")),
        ("retry", image_of("orders")),
    ],
)
def test_any_other_topic_is_made_with_defaults(name: str, image: MetadataImage) -> None:
    assert topics_for(name, image, DEFAULT_BYTES) == [
        CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    ]


def test_of_two_that_may_be_meant_neither_is() -> None:
    with pytest.raises(KafkaError, match=r"group 'b\.c' of topic 'a' or of group 'c' of topic 'a\.b'"):
        topics_for("a.b.c.retry", image_of("a", "a.b"), DEFAULT_BYTES)


def test_a_group_with_dots_is_one() -> None:
    owner = owner_of("a.b.c.retry", image_of("a"))

    assert owner is not None
    assert (owner[0].name, owner[1]) == ("a", "b.c")


@pytest.mark.parametrize("group", ["an \u00e9quipe", "g" * 300])
def test_from_a_name_that_was_escaped_or_cut_no_group_is_read(group: str) -> None:
    with pytest.raises(KafkaError, match="cannot be read from its name"):
        topics_for(retry_topics("a", group).retry, image_of("a"), DEFAULT_BYTES)


@pytest.mark.parametrize(
    ("asked_for", "there"),
    [("orders.billing.retry", "orders.billing.dlq"), ("orders.billing.dlq", "orders.billing.retry")],
)
def test_beside_a_topic_that_is_anothers_none_is_made(asked_for: str, there: str) -> None:
    with pytest.raises(KafkaError, match=f"'{there}' is there and is not for that group"):
        topics_for(asked_for, image_of("orders", others=(there,)), DEFAULT_BYTES)


def test_what_is_half_made_is_completed() -> None:
    image = image_of("orders", others=("orders.billing.dlq",))
    configs = {"odradek.retry.dead.letters.of": "orders.billing.retry"}
    known = attrs.evolve(image, configs={**image.configs, (ResourceType.TOPIC, "orders.billing.dlq"): configs})

    assert list(asked("orders.billing.retry", known)) == ["orders.billing.dlq", "orders.billing.retry"]


def test_the_suffixes_are_those_of_the_names() -> None:
    assert SUFFIXES == (RETRY_SUFFIX, DEAD_SUFFIX)
