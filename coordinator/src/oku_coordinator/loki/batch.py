"""Entries of one stream that go to Loki in one request, and how Loki reads and is asked for them.

A request holds one stream and no more: of several, Loki reports only what became of the last, and answers
204 when it has refused all lines of another.
"""

import gzip
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Entry:
    """One line.

    Attributes:
        labels: names and values; entries with the same labels are one stream.
        at_ns: its Unix time. Two entries with the same labels, time and line are the same one.
        line: its text.
    """

    labels: tuple[tuple[str, str], ...]
    at_ns: int
    line: str


@dataclass(frozen=True)
class Refusal:
    """Lines of one stream that Loki has refused for good.

    Attributes:
        entries: these lines. When Loki took a part of a batch and can't be asked which, they are all of it.
        status: of Loki's answer.
        reason: Loki's own words, in one printable line of bounded length.
    """

    entries: Sequence[Entry]
    status: int
    reason: str

    @property
    def is_early(self) -> bool:
        """Whether Loki would take them later, or with the time of a clock that is right.

        They are further in the future than its `creation_grace_period` allows (Loki, pkg/validation).
        """
        return self.status == 400 and "timestamp too new" in self.reason


_ADDED_BY_LOKI = frozenset({"service_name", "detected_level", "__stream_shard__"})
_GZIP_LEVEL = 5
_FRAME_BYTES = len(b'{"streams":[{"stream":,"values":[]}]}') - len(b",")
"""Around the labels and the values, each of which has a comma but the last."""


@dataclass(frozen=True)
class Batch:
    """Entries of one stream.

    Attributes:
        labels: of the stream.
        entries: in the order in which they were given.
    """

    labels: Mapping[str, str]
    entries: Sequence[Entry]

    @property
    def first_ns(self) -> int:
        """The time of the oldest entry."""
        return min(entry.at_ns for entry in self.entries)

    @property
    def last_ns(self) -> int:
        """The time of the newest entry."""
        return max(entry.at_ns for entry in self.entries)

    def drop(self, stored: Collection[tuple[int, str]]) -> "Batch":
        """What is left without the entries that have one of these times and lines."""
        return Batch(self.labels, [e for e in self.entries if (e.at_ns, e.line) not in stored])

    def build_body(self) -> bytes:
        """The body of its request, JSON in gzip."""
        values = [(str(entry.at_ns), entry.line) for entry in self.entries]
        document = {"streams": [{"stream": self.labels, "values": values}]}
        return gzip.compress(msgspec.json.encode(document), _GZIP_LEVEL, mtime=0)

    def build_selector(self) -> str:
        """LogQL that takes its stream, and streams that have more labels than it."""
        # What JSON escapes, LogQL reads alike.
        return "{" + ",".join(f"{name}={_quote(value)}" for name, value in self._own_labels().items()) + "}"

    def has_labels(self, labels: Mapping[str, str]) -> bool:
        """Whether these are the labels of its stream, as Loki tells them: some may have been added."""
        own = self._own_labels()
        return {n: v for n, v in labels.items() if n in own or n not in _ADDED_BY_LOKI} == own

    def _own_labels(self) -> Mapping[str, str]:
        return {name: value for name, value in self.labels.items() if value}  # Loki knows no empty ones


def cut_batches(entries: Sequence[Entry], most_bytes: int, most_lines: int) -> Iterator[Batch]:
    """All entries by their streams, each stream's in the order given.

    Args:
        entries: of any streams.
        most_bytes: of a body before compression; a line that is larger goes alone.
        most_lines: of a batch.
    """
    streams: dict[tuple[tuple[str, str], ...], list[Entry]] = {}
    for entry in entries:
        streams.setdefault(tuple(sorted(entry.labels)), []).append(entry)
    for key, stream in streams.items():
        labels = dict(key)
        frame_bytes = size = _FRAME_BYTES + len(msgspec.json.encode(labels))
        batch: list[Entry] = []
        for entry in stream:
            entry_bytes = len(msgspec.json.encode((str(entry.at_ns), entry.line))) + 1
            if batch and (len(batch) == most_lines or size + entry_bytes > most_bytes):
                yield Batch(labels, batch)
                batch, size = [], frame_bytes
            batch.append(entry)
            size += entry_bytes
        yield Batch(labels, batch)


def _quote(value: str) -> str:
    return msgspec.json.encode(value).decode()
