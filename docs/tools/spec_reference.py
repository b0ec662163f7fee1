"""Builds the reference of a spec from its table of fields."""

from collections.abc import Iterable, Iterator, Sequence

from docs.tools.field_schemas import FIELD_SCHEMAS
from docs.tools.generated_parts import build_table

from oku_core.spec.fields import FIELDS, Field, FieldGroup, describe_default
from oku_core.spec.spec import Engine


def build_fields() -> str:
    """The keys of a spec, a table for each group."""
    return "\n\n".join(f"### {group}\n\n{_build_group(group)}" for group in FieldGroup)


def build_engines() -> str:
    """The keys of a spec that some engine lacks, by the engines that support them."""
    keys: dict[tuple[Engine, ...], list[Field]] = {}
    for field in FIELDS:
        if field.refusals:
            keys.setdefault(field.engines, []).append(field)
    rows = [
        [
            _join(field.key for field in fields),
            _join(engines),
            ", ".join(filter(None, map(_write_need, fields))),
        ]
        for engines, fields in keys.items()
    ]
    rows.append(["all others", _join(Engine), ""])
    return build_table(["keys", "engines that support them", "reason for a slower engine"], rows)


def _join(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _write_need(field: Field) -> str:
    return field.need and f"needs {field.need}"


def _build_group(group: FieldGroup) -> str:
    rows = [_build_row(field) for field in FIELDS if field.group == group]
    return build_table(["key", "flags", "default", "meaning"], rows)


def _build_row(field: Field) -> Sequence[str]:
    flags = [] if field.file_only else [*field.short, f"--{field.long_flag}", *field.other_flags]
    return [
        f"`{field.key}`",
        " ".join(f"`{flag}`" for flag in flags) or "in a file",
        describe_default(field),
        " ".join([field.help, *_list_notes(field)]),
    ]


def _list_notes(field: Field) -> Iterator[str]:
    bounds = [part for part in FIELD_SCHEMAS[field.key].get("anyOf", ()) if "maximum" in part]
    if bounds and "items" not in bounds[0] and field.key != "expect-status":
        yield f"From {bounds[0]['minimum']:,} to {bounds[0]['maximum']:,}."
    if field.repeatable and not field.file_only:
        yield "Repeatable."
    if field.own_servers_only:
        yield "Only without `url`."
