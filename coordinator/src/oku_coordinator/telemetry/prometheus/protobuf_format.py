"""Writes metrics in Prometheus' protobuf format, the only one with native histograms.

The client library has native histograms among its samples, but no writer for this format. The messages come
from io/prometheus/client/metrics.proto in github.com/prometheus/client_model, with the fields that Oku uses.
They are described here instead of in generated code, which only some versions of protobuf load.
"""

import io
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import NativeHistogram, Sample

CONTENT_TYPE = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
_PACKAGE = "io.prometheus.client"
_TYPES = {"counter": 0, "gauge": 1, "histogram": 4}
"""The values of `MetricType` for Oku's kinds of metrics."""
_TIMESTAMP = ".google.protobuf.Timestamp"
_MESSAGES: Mapping[str, Sequence[tuple[int, str, str]]] = {
    "LabelPair": ((1, "name", "string"), (2, "value", "string")),
    "Gauge": ((1, "value", "double"),),
    "Counter": ((1, "value", "double"), (3, "created_timestamp", _TIMESTAMP)),
    "Bucket": ((1, "cumulative_count", "uint64"), (2, "upper_bound", "double")),
    "BucketSpan": ((1, "offset", "sint32"), (2, "length", "uint32")),
    "Histogram": (
        (1, "sample_count", "uint64"),
        (2, "sample_sum", "double"),
        (3, "bucket[]", f".{_PACKAGE}.Bucket"),
        (5, "schema", "sint32"),
        (6, "zero_threshold", "double"),
        (7, "zero_count", "uint64"),
        (12, "positive_span[]", f".{_PACKAGE}.BucketSpan"),
        (13, "positive_delta[]", "sint64"),
        (15, "created_timestamp", _TIMESTAMP),
    ),
    "Metric": (
        (1, "label[]", f".{_PACKAGE}.LabelPair"),
        (2, "gauge", f".{_PACKAGE}.Gauge"),
        (3, "counter", f".{_PACKAGE}.Counter"),
        (7, "histogram", f".{_PACKAGE}.Histogram"),
    ),
    "MetricFamily": (
        (1, "name", "string"),
        (2, "help", "string"),
        (3, "type", "int32"),  # an enumeration, which is encoded like a number
        (4, "metric[]", f".{_PACKAGE}.Metric"),
    ),
}
"""Number, name and type of the fields of each message; `[]` marks repeated ones."""


def is_accepted(accept: str) -> bool:
    """Whether an `Accept` header (RFC 9110, 12.5.1) prefers this format to text."""
    weights = {"protobuf": 0.0, "text": 0.0}
    for kind, parameters in map(_read_media_range, accept.split(",")):
        weight = _read_weight(parameters.get("q", "1"))
        if kind == "application/vnd.google.protobuf":
            if (parameters.get("proto"), parameters.get("encoding")) == (
                f"{_PACKAGE}.MetricFamily",
                "delimited",
            ):
                weights["protobuf"] = max(weights["protobuf"], weight)
        elif kind in {"text/plain", "text/*"}:
            weights["text"] = max(weights["text"], weight)
    return weights["protobuf"] > 0 and weights["protobuf"] >= weights["text"]


def write_families(families: Iterable[Metric]) -> bytes:
    """Encode counters, gauges and histograms; a histogram with a native sample also has native buckets."""
    from google.protobuf import proto  # noqa: PLC0415  # it takes long, and most runs are not scraped

    written, build = io.BytesIO(), _load_metric_family()
    for family in families:
        proto.serialize_length_prefixed(build(**_build_family(family)), written)
    return written.getvalue()


def _read_media_range(text: str) -> tuple[str, dict[str, str]]:
    kind, *parameters = text.split(";")
    pairs = (parameter.partition("=") for parameter in parameters)
    return kind.strip().lower(), {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}


def _read_weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if math.isfinite(weight) else 0.0


def _build_family(family: Metric) -> dict[str, Any]:
    """The fields of a metric family; a counter x of the library is named x_total."""
    samples: dict[tuple[tuple[str, str], ...], list[Sample]] = defaultdict(list)
    for sample in family.samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
        samples[labels].append(sample)
    build = {"counter": _build_value, "gauge": _build_value, "histogram": _build_histogram}[family.type]
    return {
        "name": f"{family.name}_total" if family.type == "counter" else family.name,
        "help": family.documentation,
        "type": _TYPES[family.type],
        "metric": [
            {
                "label": [{"name": name, "value": value} for name, value in labels],
                family.type: build(family.name, of_labels),
            }
            for labels, of_labels in samples.items()
        ],
    }


def _build_value(name: str, samples: Iterable[Sample]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for sample in samples:
        if sample.name == f"{name}_created":
            fields["created_timestamp"] = _build_timestamp(sample.value)
        else:
            fields["value"] = sample.value
    return fields


def _build_histogram(name: str, samples: Iterable[Sample]) -> dict[str, Any]:
    fields: dict[str, Any] = {"bucket": []}
    for sample in samples:
        if sample.native_histogram is not None:
            fields |= _build_native_buckets(sample.native_histogram)
        elif sample.name == f"{name}_bucket":
            bound = {"cumulative_count": int(sample.value), "upper_bound": float(sample.labels["le"])}
            fields["bucket"].append(bound)
        elif sample.name == f"{name}_count":
            fields["sample_count"] = int(sample.value)
        elif sample.name == f"{name}_sum":
            fields["sample_sum"] = sample.value
        else:
            fields["created_timestamp"] = _build_timestamp(sample.value)
    return fields


def _build_native_buckets(native: NativeHistogram) -> dict[str, Any]:
    return {
        "schema": native.schema,
        "zero_threshold": native.zero_threshold,
        "zero_count": int(native.zero_count),
        "positive_span": [{"offset": span.offset, "length": span.length} for span in native.pos_spans or ()],
        "positive_delta": native.pos_deltas or (),
    }


def _build_timestamp(unix_s: float) -> dict[str, int]:
    seconds = math.floor(unix_s)
    return {"seconds": seconds, "nanos": int((unix_s - seconds) * 1e9)}


@cache
def _load_metric_family() -> Any:
    """The message class of a metric family."""
    from google.protobuf import (  # noqa: PLC0415
        descriptor_pb2,
        descriptor_pool,
        message_factory,
        timestamp_pb2,
    )

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(
        name="io/prometheus/client/metrics.proto",
        package=_PACKAGE,
        syntax="proto2",
        dependency=[timestamp_pb2.DESCRIPTOR.name],
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            message.field.add(
                name=field.removesuffix("[]"),
                number=number,
                label=descriptor_pb2.FieldDescriptorProto.Label.Value(
                    "LABEL_REPEATED" if field.endswith("[]") else "LABEL_OPTIONAL"
                ),
                **_describe_kind(kind),
            )
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.MetricFamily"))


def _describe_kind(kind: str) -> dict[str, Any]:
    from google.protobuf import descriptor_pb2  # noqa: PLC0415

    if kind.startswith("."):
        return {"type": descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE, "type_name": kind}
    return {"type": descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")}
