import gzip
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_coordinator.loki.batch import Batch, Entry, cut_batches

LABELS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=2, unique_by=lambda p: p[0]
)
ENTRIES = st.lists(
    st.builds(
        Entry,
        labels=LABELS.map(tuple),
        at_ns=st.integers(0, 9),
        line=st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    ),
    max_size=40,
)


def build_document(batch: Batch) -> bytes:
    """The body before compression."""
    return gzip.decompress(batch.build_body())


@given(ENTRIES, st.integers(1, 400), st.integers(1, 9))
def test_all_entries_come_in_batches_of_one_stream_within_the_bounds(
    entries: list[Entry], most_bytes: int, most_lines: int
) -> None:
    """Lines keep the order of their stream; only a line that is larger than a batch exceeds it, alone."""
    batches = list(cut_batches(entries, most_bytes, most_lines))
    for batch in batches:
        assert 1 <= len(batch.entries) <= most_lines
        assert len(build_document(batch)) <= most_bytes or len(batch.entries) == 1
        assert {tuple(sorted(entry.labels)) for entry in batch.entries} == {tuple(batch.labels.items())}
    for labels in {tuple(sorted(entry.labels)) for entry in entries}:
        expected = [entry for entry in entries if tuple(sorted(entry.labels)) == labels]
        found = [e for batch in batches if tuple(batch.labels.items()) == labels for e in batch.entries]
        assert found == expected
    assert sum(len(batch.entries) for batch in batches) == len(entries)


def test_a_body_is_what_loki_reads() -> None:
    """Times are texts."""
    labels = (("app", "oku"), ("run", "r1"))
    batch = Batch(dict(labels), [Entry(labels, 7, 'a "b"'), Entry(labels, 8, "ü\n")])
    assert json.loads(build_document(batch)) == {
        "streams": [{"stream": {"app": "oku", "run": "r1"}, "values": [["7", 'a "b"'], ["8", "ü\n"]]}]
    }


def test_the_same_batch_is_the_same_body() -> None:
    """It is the same to the last byte, whenever it is made."""
    batch = Batch({"a": "b"}, [Entry((("a", "b"),), 7, "x")])
    assert batch.build_body() == batch.build_body()
    assert batch.build_body()[4:8] == bytes(4)  # the time in the header of gzip


@pytest.mark.parametrize(
    ("labels", "selector"),
    [
        ({"app": "oku", "run": "r1"}, '{app="oku",run="r1"}'),
        ({"app": 'a"b\\c'}, r'{app="a\"b\\c"}'),
        ({"app": "a\nb\tc\x00"}, r'{app="a\nb\tc\u0000"}'),
        ({"app": "übel 🙂"}, '{app="übel 🙂"}'),
        ({"app": "oku", "name": ""}, '{app="oku"}'),
    ],
)
def test_a_selector_takes_the_stream_whatever_its_labels(labels: dict[str, str], selector: str) -> None:
    """LogQL reads texts as Go does."""
    assert Batch(labels, []).build_selector() == selector


@pytest.mark.parametrize(
    ("told", "is_same"),
    [
        ({"app": "oku"}, True),
        ({"app": "oku", "service_name": "oku", "detected_level": "info", "__stream_shard__": "3"}, True),
        ({"app": "oku", "late": "true"}, False),
        ({"app": "other"}, False),
        ({}, False),
    ],
)
def test_a_stream_is_known_by_its_labels_but_those_that_loki_adds(
    told: dict[str, str], *, is_same: bool
) -> None:
    """Others make another stream."""
    assert Batch({"app": "oku", "name": ""}, []).has_labels(told) is is_same


def test_a_label_of_ones_own_counts_even_when_loki_could_have_added_it() -> None:
    """It was given."""
    batch = Batch({"app": "oku", "service_name": "mine"}, [])
    assert batch.has_labels({"app": "oku", "service_name": "mine"})
    assert not batch.has_labels({"app": "oku", "service_name": "other"})


def test_what_is_stored_is_dropped_by_time_and_line() -> None:
    """Both must be the same."""
    entries = [Entry((), 1, "a"), Entry((), 1, "b"), Entry((), 2, "a")]
    batch = Batch({}, entries)
    assert batch.drop({(1, "a"), (2, "b")}).entries == entries[1:]
    assert (batch.first_ns, batch.last_ns) == (1, 2)


def test_sizes_are_those_of_the_wire() -> None:
    """What JSON escapes is longer there."""
    entries = [Entry((), at, '"' * 100) for at in range(4)]
    size = len(msgspec.json.encode({"streams": [{"stream": {}, "values": [("0", '"' * 100)] * 2}]}))
    assert [len(batch.entries) for batch in cut_batches(entries, size, 1000)] == [2, 2]
    assert [len(batch.entries) for batch in cut_batches(entries, size - 1, 1000)] == [1, 1, 1, 1]
