from pathlib import Path

import pytest
from docs.tools.references import check


def find_faults(root: Path, text: str) -> list[str]:
    """The faults of a document with this text in a repository with one other document and one module."""
    (root / "docs").mkdir()
    (root / "docs" / "other.md").write_text("# Title\n\n## What it's *for*\n")
    (root / "docs" / "page.md").write_text(text)
    return list(check(root / "docs" / "page.md", root))


@pytest.mark.parametrize(
    "text",
    [
        "`oku_core.spec.parser`",
        "`oku_core.spec.parser.parse_spec`",
        "`docs/other.md`",
        "[link](other.md)",
        "[link](other.md#what-its-for)",
        "[link](#here)\n\n## Here",
        "[link](https://example.com/docs/missing.md)",
        "https://example.com/docs/missing.md",
    ],
)
def test_what_exists_may_be_referred_to(tmp_path: Path, text: str) -> None:
    """Names, paths, links and anchors that exist are no faults, nor is what lies elsewhere."""
    assert find_faults(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("`oku_core.spec.missing`", "oku_core.spec.missing does not exist"),
        ("`oku_core.spec.parser.MISSING`", "oku_core.spec.parser.MISSING does not exist"),
        ("`docs/missing.md`", "docs/missing.md does not exist"),
        ("see tests/missing.", "tests/missing does not exist"),
        ("[link](missing.md)", "the link missing.md leads nowhere"),
        ("[link](other.md#missing)", "the link other.md#missing names a heading that does not exist"),
    ],
)
def test_what_does_not_exist_is_a_fault(tmp_path: Path, text: str, fault: str) -> None:
    """Each kind of reference is held against what it refers to."""
    assert find_faults(tmp_path, text) == [fault]
