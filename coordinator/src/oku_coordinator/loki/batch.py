"""A batch: the entries of one stream in one request, and how to query Loki for them.

A request contains only one stream: with several, Loki reports the result of the last one only, and answers
204 when it has rejected all lines of another.
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
        at_ns: its Unix time. Two entries with the same labels, time and line are identical.
        line: its text.
    """

    labels: tuple[tuple[str, str], ...]
    at_ns: int
    line: str


@dataclass(frozen=True)
class Refusal:
    """Lines of one stream that Loki has rejected for good.

    Attributes:
        entries: the lines. If Loki may have accepted some of a batch and cannot be queried, the whole batch.
        status: the status of Loki's response.
        reason: Loki's message, as one printable line of bounded length.
    """

    entries: Sequence[Entry]
    status: int
    reason: str

    @property
    def is_early(self) -> bool:
        """Whether Loki would accept them later, or from a clock that is right.

        They are further in the future than its `creation_grace_period` allows (Loki, pkg/validation).
        """
        return self.status == 400 and "timestamp too new" in self.reason


_ADDED_BY_LOKI = frozenset({"service_name", "detected_level", "__stream_shard__"})
_GZIP_LEVEL = 5
_FRAME_BYTES = len(b'{"streams":[{"stream":,"values":[]}]}') - len(b",")
"""Around the labels and the values, each but the last with a comma."""


@dataclass(frozen=True)
class Batch:
    """Entries of one stream.

    Attributes:
        labels: the labels of the stream.
        entries: in the given order.
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
        """The batch without the entries that have one of these times and lines."""
        return Batch(self.labels, [e for e in self.entries if (e.at_ns, e.line) not in stored])

    def build_body(self) -> bytes:
        """The body of its request: gzipped JSON."""
        values = [(str(entry.at_ns), entry.line) for entry in self.entries]
        document = {"streams": [{"stream": self.labels, "values": values}]}
        return gzip.compress(msgspec.json.encode(document), _GZIP_LEVEL, mtime=0)

    def build_selector(self) -> str:
        """A LogQL selector that matches its stream, and streams with additional labels."""
        # LogQL reads the escapes of JSON alike.
        return "{" + ",".join(f"{name}={_quote(value)}" for name, value in self._own_labels().items()) + "}"

    def has_labels(self, labels: Mapping[str, str]) -> bool:
        """Whether these are the labels of its stream, to which Loki may have added some."""
        own = self._own_labels()
        return {n: v for n, v in labels.items() if n in own or n not in _ADDED_BY_LOKI} == own

    def _own_labels(self) -> Mapping[str, str]:
        return {name: value for name, value in self.labels.items() if value}  # Loki drops empty labels


def cut_batches(entries: Sequence[Entry], most_bytes: int, most_lines: int) -> Iterator[Batch]:
    """Cut entries into batches by stream, each stream in the given order.

    Args:
        entries: of any streams.
        most_bytes: the size of a body before compression; a larger line goes alone.
        most_lines: the number of lines of a batch.
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
