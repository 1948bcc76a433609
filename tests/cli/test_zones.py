"""The history of the world's clocks, against the standard library's own reading of the same database."""

import importlib.resources
import io
import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from odradek.cli.demo.zones import Transition, all_transitions, moment_text, offset_text, zone_transitions

UNTIL = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())


def read_zone(name: str) -> bytes:
    return (importlib.resources.files("tzdata") / "zoneinfo" / name).read_bytes()


@pytest.mark.parametrize(
    "zone",
    [
        "Africa/Casablanca",  # no rule: every change is stored
        "America/New_York",
        "America/Nuuk",  # a change at a negative hour
        "Asia/Kathmandu",
        "Australia/Lord_Howe",  # half an hour of summer time
        "Australia/Sydney",  # summer time over New Year
        "Europe/Dublin",  # winter time is the exception by law
        "Pacific/Chatham",
    ],
)
def test_every_change_is_what_the_standard_library_makes_of_it(zone: str) -> None:
    clock = ZoneInfo.from_file(io.BytesIO(read_zone(zone)))  # not the system's, which may be another version
    for transition in zone_transitions(zone, read_zone(zone), UNTIL):
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=transition.at)
        before, after = (at - timedelta(seconds=1)).astimezone(clock), at.astimezone(clock)

        assert (before.utcoffset(), after.utcoffset()) == (
            timedelta(seconds=transition.before_s),
            timedelta(seconds=transition.after_s),
        )
        assert after.tzname() == transition.abbreviation


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Sydney", "Europe/Paris", "America/Nuuk"])
def test_the_rule_goes_on_where_the_stored_changes_end(zone: str) -> None:
    clock = ZoneInfo.from_file(io.BytesIO(read_zone(zone)))  # not the system's, which may be another version
    days = [datetime(2008, 1, 1, 12, tzinfo=UTC) + timedelta(days=day) for day in range(18 * 365)]
    offsets = [day.astimezone(clock).utcoffset() for day in days]
    changes = sum(before != after for before, after in itertools.pairwise(offsets))

    assert changes == sum(
        days[0].timestamp() < transition.at < days[-1].timestamp()
        for transition in zone_transitions(zone, read_zone(zone), UNTIL)
    )


def test_new_york_began_with_its_own_noon() -> None:
    (first, *_others) = zone_transitions("America/New_York", read_zone("America/New_York"), UNTIL)

    assert first == Transition("America/New_York", -2717650800, -17762, -18000, "EST", False)
    assert moment_text(first.at) == "1883-11-18T17:00:00Z"
    assert (offset_text(first.before_s), offset_text(first.after_s)) == ("-04:56:02", "-05:00")


def test_all_zones_stand_in_time_order_and_end_in_time() -> None:
    files = {zone: read_zone(zone) for zone in ("Europe/Paris", "Asia/Tokyo", "Etc/UTC")}
    transitions = all_transitions(files, UNTIL)

    assert {"Europe/Paris", "Asia/Tokyo"} == {transition.zone for transition in transitions}
    assert [transition.at for transition in transitions] == sorted(transition.at for transition in transitions)
    assert transitions[-1].at < UNTIL


@pytest.mark.parametrize("data", [b"", b"TZif\0" + bytes(60), b"text"])
def test_what_is_no_zone_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="TZif"):
        list(zone_transitions("X", data, UNTIL))
