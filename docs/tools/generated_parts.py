"""The generated parts of a page: each stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->`."""

from collections.abc import Iterable, Mapping, Sequence


def replace_parts(text: str, parts: Mapping[str, str]) -> str:
    """A page with each of its generated parts as it must be."""
    for name, part in parts.items():
        before, rest = text.split(begin := f"<!-- {name}:begin -->\n")
        _, after = rest.split(end := f"<!-- {name}:end -->\n")
        text = f"{before}{begin}{part}\n{end}{after}"
    return text


def build_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; what would end a cell is escaped."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|" for cells in lines)
