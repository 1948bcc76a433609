"""Replicas opened and closed: with one directory of two, and after their topic was deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.kernel.machine.turnstile import run_at_once

from .hosted import Hosted


def test_the_replicas_of_a_deleted_topic_go_one_by_one(hosted: Hosted) -> None:
    """Thousands that went together would take their time together."""
    hosted.open("t", 4)
    topic = hosted.replicas.topics["t"]
    left = [len(topic.partitions) for _ in hosted.lifecycle.delete_topic_in_steps("t", 4)]

    assert left == [4, 4, 4, 4, 4, 3, 2, 1]
    assert not topic.partitions


def test_what_a_deleted_topic_had_staged_is_written_nowhere_and_no_failure(
    hosted: Hosted, caplog: pytest.LogCaptureFixture
) -> None:
    hosted.open("t")
    hosted.open("u")
    gone, other = hosted.stage("t"), hosted.stage("u")
    run_at_once(hosted.lifecycle.delete_topic_in_steps("t", 1))
    reason = gone.offline_reason
    hosted.writes.write_staged()

    assert (gone.is_dirty, gone.offline_reason) == (False, reason)
    assert (other.is_dirty, other.appended_offset) == (False, 1)
    assert not caplog.records


def test_a_restart_with_one_of_two_directories_failing_serves_what_is_in_the_other(tmp_path: Path) -> None:
    first = Hosted(tmp_path)
    first.open("t", 6)
    for index in range(6):
        first.produce("t", 0, partition=index)
    homes = {index: first.replicas.get("t", index).log.log_dir for index in range(6)}
    first.lifecycle.close()
    (gone,) = [path for path in first.dirs if path == homes[0]]
    Path(gone).rename(tmp_path / "taken away")
    Path(gone).write_text("no directory")
    second = Hosted(tmp_path)
    second.open("t", 6)
    served = {index: replica for index, replica in second.replicas.topics["t"].partitions.items() if replica.is_leader}
    second.lifecycle.close()

    assert {index for index, home in homes.items() if home != gone} <= served.keys()
    assert {replica.log.log_dir for replica in served.values()} == {path for path in first.dirs if path != gone}
