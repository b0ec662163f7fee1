from pathlib import Path

import pytest
from tests.kit.documents.blocks import Block, Mark, read_blocks


def read(folder: Path, text: str) -> list[Block]:
    """The blocks of a page with this text."""
    page = folder / "page.md"
    page.write_text(text)
    return list(read_blocks(page))


def test_a_block_has_the_marks_above_it(tmp_path: Path) -> None:
    """Marks belong to the next block only, with their values."""
    text = "Text.\n\n<!-- file: a.yaml -->\n<!-- refused -->\n```yaml\na: 1\n```\n\n```sh\noku run\n```\n"
    yaml, shell = read(tmp_path, text)
    assert (yaml.language, yaml.content, yaml.line) == ("yaml", "a: 1\n", 6)
    assert yaml.marks == {Mark.FILE: "a.yaml", Mark.REFUSED: ""}
    assert (shell.language, shell.marks) == ("sh", {})


def test_an_unknown_mark_is_an_error(tmp_path: Path) -> None:
    """A typing mistake does not leave a block out."""
    with pytest.raises(ValueError, match="not runn"):
        read(tmp_path, "<!-- not runn: it is long -->\n```sh\noku run\n```\n")
