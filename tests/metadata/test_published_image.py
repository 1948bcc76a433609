"""Whom the newest metadata shows as lost a moment ago: who was fenced without having asked to leave."""

from __future__ import annotations

import pytest

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.metadata.published_image import LOST_MS_MAX, PublishedImage
from tests.controller.metadata_helpers import DrivenController


@pytest.fixture
def driven() -> DrivenController:
    return DrivenController(brokers=3)


@pytest.fixture
def published(driven: DrivenController) -> PublishedImage:
    published = PublishedImage(BrokerConfig(Registry.of(())))
    published.publish(driven.image, 0)
    return published


def change(
    driven: DrivenController, published: PublishedImage, now_ms: int, *, fence: bool, shutdown: bool = False
) -> None:
    decided = driven.controller.change_broker(3, driven.epoch_of(3), fence=fence, shutdown=shutdown)
    driven.apply(decided)
    published.publish(driven.image, now_ms)


def lost(published: PublishedImage, now_ms: int) -> list[int]:
    return [broker.broker_id for broker in published.lost_brokers(now_ms)]


def test_a_broker_that_is_fenced_counts_as_lost_for_a_moment(
    driven: DrivenController, published: PublishedImage
) -> None:
    assert lost(published, 0) == []
    change(driven, published, 10, fence=True)

    assert lost(published, 10) == lost(published, 10 + LOST_MS_MAX - 1) == [3]
    assert lost(published, 10 + LOST_MS_MAX) == []


def test_it_is_not_lost_when_it_is_back(driven: DrivenController, published: PublishedImage) -> None:
    change(driven, published, 10, fence=True)
    change(driven, published, 20, fence=False)

    assert lost(published, 20) == []


def test_who_asked_to_leave_is_not_lost(driven: DrivenController, published: PublishedImage) -> None:
    change(driven, published, 10, fence=False, shutdown=True)
    change(driven, published, 20, fence=True)

    assert lost(published, 20) == []


def test_who_was_fenced_when_the_metadata_was_read_is_not_lost(
    driven: DrivenController, published: PublishedImage
) -> None:
    driven.apply(driven.controller.change_broker(3, driven.epoch_of(3), fence=True))
    fresh = PublishedImage(published.config)
    fresh.publish(driven.image, 10)

    assert lost(fresh, 10) == []
