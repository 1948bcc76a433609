"""What Metadata tells of all topics is kept encoded: the same bytes as without, whatever changes in between."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio

from odradek.kernel.dispatch.handlers.api_03_metadata import MetadataHandler
from odradek.kernel.dispatch.kept_topics import KINDS_MAX
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.image import MetadataImage, TopicImage
from odradek.kernel.wire import encode_bytes
from odradek.kernel.wire.codec import encoder_in_steps
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataResponse
from tests.controller.controller_requests import create_partitions, create_topics, delete_topics, topic
from tests.controller.metadata_helpers import DrivenController


class Asked:
    """A handler over metadata that changes; counts the topics that are made for an answer."""

    def __init__(self) -> None:
        self.driven = DrivenController(brokers=3)
        for name in ("a", "b", "c"):
            self.create(name)
        self.made: list[str] = []
        self.handler = MetadataHandler(
            broker_id=1,
            image=lambda: self.image,
            may_create_topics=lambda: False,
            create_topics=lambda _names: None,
            internal_topics=frozenset({"c"}),
            lost_brokers=lambda: (),
        )
        make = self.handler._topic

        def counted(found: TopicImage, **others: Any) -> Any:
            self.made.append(found.name)
            return make(found, **others)

        self.handler._topic = counted  # type: ignore[method-assign,assignment]

    @property
    def image(self) -> MetadataImage:
        return self.driven.image

    def create(self, name: str) -> None:
        self.driven.apply(self.driven.controller.decide(create_topics(topic(name, -1, -1, {0: [1, 2], 1: [3, 1]}))))

    def ask(self, version: int, listener: str = "PLAINTEXT", **request: Any) -> list[str]:
        """Ask for everything, by a task; return the topics that were made for it, after a look at every byte."""
        context: Any = SimpleNamespace(api_version=version, connection=SimpleNamespace(listener_name=listener))
        body = MetadataRequest(topics=[] if version == 0 else None, **request)
        self.made.clear()
        answer = trio.run(self.handler.handle_async, body, context)
        made = list(self.made)
        assert isinstance(answer, MetadataResponse)
        whole = run_at_once(self.handler.answer_in_steps(body, context))
        found = run_at_once(encoder_in_steps(MetadataResponse, version)(answer)).join()
        assert found == encode_bytes(whole, version)
        return made


@pytest.mark.parametrize("version", range(14))
def test_what_is_kept_is_what_would_be_told(version: int) -> None:
    asked = Asked()

    assert asked.ask(version) == ["a", "b", "c"]
    assert asked.ask(version) == []


def test_a_topic_that_changes_is_made_again_and_those_that_come_and_go_are_told() -> None:
    asked = Asked()
    asked.ask(12)

    asked.driven.apply(asked.driven.controller.decide(create_partitions(("b", 3, [[1, 2]]))))
    assert asked.ask(12) == ["b"]
    asked.create("d")
    assert asked.ask(12) == ["d"]
    asked.driven.apply(asked.driven.controller.decide(delete_topics("a")))
    assert asked.ask(12) == []
    asked.create("a")
    assert asked.ask(12) == ["a"]


def test_where_brokers_change_all_is_made_again() -> None:
    asked = Asked()
    asked.ask(12)
    asked.driven.apply(asked.driven.controller.change_broker(3, asked.image.brokers[3].broker_epoch, fence=True))

    assert asked.ask(12) == ["a", "b", "c"]


def test_what_depends_on_the_request_is_kept_apart() -> None:
    asked = Asked()
    asked.ask(9)

    assert asked.ask(10) == ["a", "b", "c"]
    assert asked.ask(10, "INTERNAL") == ["a", "b", "c"]
    assert asked.ask(10, include_topic_authorized_operations=True) == ["a", "b", "c"]
    assert asked.ask(9) == asked.ask(10) == []


def test_so_many_kinds_are_kept_those_that_were_asked_for_last() -> None:
    asked = Asked()
    for version in range(5, 5 + KINDS_MAX):
        asked.ask(version)
    asked.ask(5)
    asked.ask(12)

    assert asked.ask(5) == []
    assert asked.ask(6) == ["a", "b", "c"]


def test_a_look_that_was_given_up_leaves_what_was_kept() -> None:
    asked = Asked()
    asked.ask(12)
    context: Any = SimpleNamespace(api_version=12, connection=SimpleNamespace(listener_name="PLAINTEXT"))
    steps = asked.handler.answer_in_steps(MetadataRequest(topics=None), context, keeps=True)
    next(steps)
    steps.close()

    assert asked.ask(12) == []


def test_the_image_of_an_unchanged_topic_is_the_same_object() -> None:
    """Else nothing would ever be kept."""
    asked = Asked()
    before = asked.image
    asked.create("d")

    assert asked.image is not before
    assert asked.image.brokers is before.brokers
    assert all(asked.image.topics_by_name[name] is before.topics_by_name[name] for name in "abc")
    assert attrs.evolve(before, offset=before.offset + 1).topics_by_name is before.topics_by_name
