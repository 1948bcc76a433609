"""The rules: each is broken by something, and by nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from odradek.lab.simulator.oracle import Oracle, PromiseBrokenError, Sent
from odradek.lab.simulator.promises import (
    DISK_TABLE,
    REPLICATED_TABLE,
    TABLE,
    VOTED_TABLE,
    DiskAccident,
    Promise,
    losses_of,
    promises_of,
)

FIRST, SECOND, THIRD = (Sent("p", number, 0) for number in range(3))
NOW = 5


def oracle(*, acks: str = "all", flush_messages: int = 1, is_idempotent: bool = True) -> Oracle:
    made = Oracle(promises_of(acks, flush_messages), is_idempotent=is_idempotent)
    for record in (FIRST, SECOND, THIRD):
        made.sent(record)
    return made


def log_of(*records: Sent) -> list[tuple[int, str]]:
    return [(offset, record.value) for offset, record in enumerate(records)]


def test_what_was_acknowledged_and_is_there_breaks_nothing() -> None:
    made = oracle()
    made.acknowledged(FIRST, 0, NOW)
    made.acknowledged(SECOND, 1, NOW)
    made.given_up()
    made.delivered(0, 0, FIRST.value, NOW)
    made.check_log(0, log_of(FIRST, SECOND, THIRD))

    assert (made.acknowledged_count, made.delivered_count, made.open_count) == (2, 1, 0)


@pytest.mark.parametrize(
    ("rule", "log"),
    [
        ("origin", [(0, "stranger/0/0")]),
        ("dense", [(0, FIRST.value), (2, SECOND.value)]),
        ("kept", log_of(SECOND)),
        ("kept", []),
        ("once", log_of(FIRST, FIRST)),
        ("order", log_of(FIRST, THIRD, SECOND)),
    ],
)
def test_a_log_breaks_a_rule(rule: str, log: list[tuple[int, str]]) -> None:
    made = oracle()
    made.acknowledged(FIRST, 0, NOW)

    with pytest.raises(PromiseBrokenError, match=f"^{rule}: "):
        made.check_log(0, log)


def test_who_reads_on_is_given_the_next_record_or_begins_again() -> None:
    made = oracle()
    for expected, offset in ((0, 0), (1, 1), (2, 0), (1, 1)):
        made.followed(0, expected, offset)

    with pytest.raises(PromiseBrokenError, match=r"^gap: partition 0 was read up to 2, and then came 3"):
        made.followed(0, 2, 3)
    made.rotted(0, 2)
    made.followed(0, 2, 3)


def test_an_offset_is_acknowledged_for_one_record() -> None:
    made = oracle()
    made.acknowledged(FIRST, 0, NOW)

    with pytest.raises(PromiseBrokenError, match=r"^place: "):
        made.acknowledged(SECOND, 0, NOW)


def test_what_is_delivered_is_what_was_acknowledged_for_its_place() -> None:
    made = oracle()
    made.acknowledged(FIRST, 0, NOW)

    with pytest.raises(PromiseBrokenError, match=r"^place: "):
        made.delivered(0, 0, SECOND.value, NOW)


def test_what_was_delivered_does_not_change_or_vanish() -> None:
    made = oracle(is_idempotent=False)
    made.delivered(0, 1, FIRST.value, NOW)

    with pytest.raises(PromiseBrokenError, match=r"^change: "):
        made.delivered(0, 1, SECOND.value, NOW)
    with pytest.raises(PromiseBrokenError, match=r"^change: "):
        made.check_log(0, log_of(SECOND))


@pytest.mark.parametrize("flush_messages", [0, 1])
def test_a_process_that_dies_takes_nothing(flush_messages: int) -> None:
    made = oracle(flush_messages=flush_messages)
    made.acknowledged(FIRST, 0, NOW)
    made.died(NOW)

    with pytest.raises(PromiseBrokenError, match=r"^kept: "):
        made.check_log(0, [])


def test_a_loss_of_power_takes_nothing_that_was_flushed() -> None:
    made = oracle(flush_messages=1)
    made.acknowledged(FIRST, 0, NOW)
    made.lost_power(NOW)

    with pytest.raises(PromiseBrokenError, match=r"^kept: "):
        made.check_log(0, [])


def test_a_loss_of_power_may_take_the_end_of_what_was_not_flushed() -> None:
    made = oracle(flush_messages=0)
    for offset, record in enumerate((FIRST, SECOND)):
        made.acknowledged(record, offset, NOW)
    made.lost_power(NOW)
    made.delivered(0, 1, THIRD.value, NOW + 1)

    made.check_log(0, log_of(FIRST, THIRD))


def test_a_loss_of_power_takes_nothing_from_the_middle() -> None:
    made = oracle(flush_messages=0)
    for offset, record in enumerate((FIRST, SECOND)):
        made.acknowledged(record, offset, NOW)
    made.lost_power(NOW)

    with pytest.raises(PromiseBrokenError, match=r"^prefix: "):
        made.check_log(0, [(0, THIRD.value), (1, SECOND.value)])


def test_what_a_client_comes_to_in_the_moment_of_the_loss_it_was_told_before() -> None:
    made = oracle(flush_messages=0)
    made.lost_power(NOW)
    made.acknowledged(FIRST, 0, NOW)
    made.delivered(0, 0, FIRST.value, NOW)

    made.check_log(0, log_of(SECOND))


def test_what_was_unanswered_when_the_broker_stopped_may_be_there_twice_and_nothing_else() -> None:
    made = oracle()
    made.acknowledged(FIRST, 0, NOW)
    made.stopped()
    made.check_log(0, log_of(FIRST, SECOND, THIRD, SECOND, THIRD))

    with pytest.raises(PromiseBrokenError, match=r"^order: "):
        made.check_log(0, log_of(FIRST, THIRD, SECOND))
    with pytest.raises(PromiseBrokenError, match=r"^once: "):
        made.check_log(0, log_of(FIRST, FIRST))


def test_order_is_promised_to_idempotent_producers_alone() -> None:
    oracle(is_idempotent=False).check_log(0, log_of(SECOND, FIRST, FIRST))


def test_without_acknowledgements_nothing_is_promised_to_outlive_a_crash() -> None:
    made = oracle(acks="0", flush_messages=0)
    made.acknowledged(FIRST, -1, NOW)
    made.delivered(0, 0, FIRST.value, NOW)
    made.died(NOW)

    made.check_log(0, [])


def test_the_table_is_that_of_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs/explanation/durability.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in page.partition("### With three replicas")[0].splitlines()
        if re.match(r"\| (0|1|all|1 or all, .*) \|", line)
    ]
    told = {(*cells[0].partition(",")[0].split(" or "), "flush.messages=1" in cells[0]): cells[2:] for cells in rows}

    assert len(told) == len(TABLE)
    for row in TABLE:
        after_death, after_power_loss = told[(*row.acks, row.is_flushed)]
        if row.acks == ("0",):  # nobody is told that a record was written: nothing can be held against it
            assert (row.after_death, row.after_power_loss) == (Promise.NOTHING, Promise.NOTHING)
        else:
            assert row.after_death.value in after_death
            assert row.after_power_loss.value in after_power_loss


def test_the_table_of_accidents_of_a_disk_is_that_of_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs/explanation/durability.md").read_text()
    told = dict(re.findall(r"^\| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE))

    assert DISK_TABLE.keys() == set(DiskAccident)
    for accident, promise in DISK_TABLE.items():
        assert promise.value in told[accident.value]


def test_the_table_of_three_replicas_is_that_of_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs/explanation/durability.md").read_text()
    section = page.partition("### With three replicas")[2].partition("###")[0]
    told = re.findall(
        r"^\| (1|all)(, with `flush\.messages=1`)? \| (any|\d) \| (\d) \| (\d) \| (\d) \| (\d) \|$",
        section,
        re.MULTILINE,
    )

    assert [
        (acks, None if min_isr == "any" else int(min_isr), bool(flushed), *map(int, losses))
        for acks, flushed, min_isr, *losses in told
    ] == [tuple(row) for row in REPLICATED_TABLE]


def test_the_table_of_replicas_that_vote_is_that_of_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs/explanation/durability.md").read_text()
    section = page.partition("### Where replicas vote")[2]
    told = re.findall(
        r"^\| (1|all)(, with `flush\.messages=1`)? \| (\d) \| (\d) \| (\d) \| (\d) \|$", section, re.MULTILINE
    )

    assert [(acks, None, bool(flushed), *map(int, losses)) for acks, flushed, *losses in told] == [
        tuple(row) for row in VOTED_TABLE
    ]
    assert losses_of(3, is_flushed=False, votes=True) == VOTED_TABLE[1]


def test_where_replicas_vote_offsets_may_be_left_out() -> None:
    made = Oracle(promises_of("all", 1), is_idempotent=True, is_dense=False)
    made.sent(FIRST)
    made.acknowledged(FIRST, 1, NOW)
    made.check_log(0, [(1, FIRST.value)])


@pytest.mark.parametrize(("min_isr", "while_two_are_away_max"), [(1, 0), (2, 1), (3, 1)])
def test_what_may_be_lost_of_three_is_looked_up_by_min_isr_and_flushing(
    min_isr: int, while_two_are_away_max: int
) -> None:
    assert losses_of(min_isr, is_flushed=False, votes=False).while_two_are_away_max == while_two_are_away_max
    assert losses_of(min_isr, is_flushed=True, votes=False).power_losses_max == 3


def test_behind_a_batch_that_rotted_nothing_is_promised_and_before_it_everything() -> None:
    made = oracle()
    made.acknowledged(FIRST, 0, NOW)
    made.acknowledged(SECOND, 1, NOW)
    made.delivered(0, 1, SECOND.value, NOW)
    made.rotted(0, 1)
    made.acknowledged(THIRD, 2, NOW)
    made.check_log(0, log_of(FIRST))
    made.check_log(0, [(0, FIRST.value), (1 << 20, SECOND.value)])
    made.delivered(0, 1, THIRD.value, NOW)

    with pytest.raises(PromiseBrokenError, match=r"^kept: "):
        made.check_log(0, [])
