"""Which versions of a message say all that stands in it."""

from __future__ import annotations

import pytest

from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.wire.complete import says_all
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.kernel.wire.messages.api_57_update_features import FeatureUpdateKey, UpdateFeaturesRequest

DOWNGRADE = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="f", allow_downgrade=True)])
UPGRADE = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="f", upgrade_type=2)])


@pytest.mark.parametrize(
    ("message", "versions"),
    [
        (DeleteTopicsRequest(topic_names=["t"]), range(1, 6)),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), range(6, 7)),
        (DeleteTopicsRequest(), range(1, 7)),
        (DOWNGRADE, range(1)),
        (UPGRADE, range(1, 3)),
        (UpdateFeaturesRequest(), range(3)),
    ],
)
def test_a_version_says_all_where_it_has_every_field_that_is_set(message: Message, versions: range) -> None:
    known = type(message).__versions__

    assert [v for v in range(known.lowest, known.highest + 1) if run_at_once(says_all(message, v))] == list(versions)
