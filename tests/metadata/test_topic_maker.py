"""Topics made because somebody asked for them: one request a name, and what fails is told and forgotten."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.topic_maker import WAITING_MAX, TopicMaker
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


class Controller:
    """Answers CreateTopics with what is set for a name; notes who was asked for."""

    def __init__(self, **codes: ErrorCode) -> None:
        self.codes = codes
        self.asked: list[str] = []

    async def create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        (topic,) = request.topics
        self.asked.append(topic.name)
        await trio.lowlevel.checkpoint()
        code = self.codes.get(topic.name, ErrorCode.NONE)
        if code is ErrorCode.NOT_CONTROLLER:
            raise KafkaError(code, "nobody leads")
        result = CreatableTopicResult(name=topic.name, error_code=code, error_message=f"{topic.name} is refused")
        return CreateTopicsResponse(topics=[result])


def ask(controller: Controller, *rounds: list[str]) -> None:
    async def main() -> None:
        maker = TopicMaker(controller.create, lambda name: [CreatableTopic(name=name)])
        async with trio.open_nursery() as nursery:
            for names in rounds:
                maker.create_soon(names)
            await nursery.start(maker.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(main)


def test_a_name_that_waits_is_not_asked_for_twice() -> None:
    controller = Controller()
    ask(controller, ["a", "b"], ["b", "a", "c"])

    assert controller.asked == ["a", "b", "c"]


def test_what_is_beyond_the_bound_is_forgotten_and_may_be_asked_for_again() -> None:
    controller = Controller()
    names = [f"t{number}" for number in range(WAITING_MAX + 1)]
    ask(controller, names)
    ask(controller, names[-1:])

    assert controller.asked == [*names[:-1], names[-1]]


def test_a_topic_that_cannot_be_made_is_told_and_the_next_is_made(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    controller = Controller(
        bad=ErrorCode.INVALID_TOPIC_EXCEPTION, old=ErrorCode.TOPIC_ALREADY_EXISTS, late=ErrorCode.NOT_CONTROLLER
    )
    ask(controller, ["bad", "old", "late", "good"])

    assert controller.asked == ["bad", "old", "late", "good"]
    assert [record.getMessage() for record in caplog.records] == [
        "topic bad was not created: bad is refused",
        "topic late was not created: nobody leads",
    ]


def test_what_is_asked_for_again_and_again_and_cannot_be_made_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def main() -> None:
        controller = Controller(bad=ErrorCode.INVALID_TOPIC_EXCEPTION)
        maker = TopicMaker(controller.create, lambda name: [CreatableTopic(name=name)])
        async with trio.open_nursery() as nursery:
            await nursery.start(maker.run)
            for _ in range(3):
                maker.create_soon(["bad"])
                await trio.testing.wait_all_tasks_blocked()
            controller.codes["bad"] = ErrorCode.NONE
            maker.create_soon(["bad"])
            await trio.testing.wait_all_tasks_blocked()
            controller.codes["bad"] = ErrorCode.INVALID_TOPIC_EXCEPTION
            maker.create_soon(["bad"])
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert [record.getMessage() for record in caplog.records] == ["topic bad was not created: bad is refused"] * 2
