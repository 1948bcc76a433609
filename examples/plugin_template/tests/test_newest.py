"""The policy keeps Odradek's contract, and the newest records of each key."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st
from odradek_template.newest import NEWEST_RECORDS, NewestPolicy, NewestSelection

from odradek.kernel.api import CleanupPolicy, CleanupSettings
from odradek.testing.contracts.cleanup import CleanupPolicyContract, a_record


class TestNewestPolicy(CleanupPolicyContract):
    def make_policy(self) -> CleanupPolicy:
        return NewestPolicy()

    def settings(self) -> CleanupSettings:
        values = {NEWEST_RECORDS: 2}
        return CleanupSettings(cleanup_policy=("newest",), min_cleanable_dirty_ratio=0.0, values=values)


@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=30), st.integers(0, 30), st.integers(1, 4))
def test_the_newest_records_of_each_key_stay(keys: list[bytes], first_dirty: int, newest: int) -> None:
    selection = NewestSelection(1 << 20, 30, 0.9, newest=newest)
    records = list(enumerate(keys))
    for offset, key in records[first_dirty:]:
        assert selection.note(key, a_record(offset, key))
    for offset, key in records[:first_dirty]:
        selection.weigh(key, a_record(offset, key))
    by_key = defaultdict(list)
    for offset, key in records:
        by_key[key].append(offset)
    dirty = set(keys[first_dirty:])
    expected = [offset for offset, key in records if key not in dirty or offset in by_key[key][-newest:]]

    assert expected == [offset for offset, key in records if selection.keeps(key, a_record(offset, key))]


def test_a_pass_ends_when_there_is_no_room() -> None:
    selection = NewestSelection(1, 10, 0.9, newest=1)
    noted = [selection.note(key, a_record(offset, key)) for offset, key in enumerate((b"a", b"a", b"b"))]

    assert noted == [True, True, False]
