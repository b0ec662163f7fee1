from pathlib import Path

from docs.tools.vocabulary import check_names, list_names, read_glossary

GLOSSARY = {"lease", "summary"}
WORDS = ["dispatch  message queues", "table  databases"]


def check(*names: str, lines: list[str] | None = None) -> list[str]:
    """The faults of modules of these names."""
    modules = {f"{name}.py": name.split("_") for name in (*names, "dispatch", "table")}
    return check_names(modules, GLOSSARY, WORDS if lines is None else lines)


def test_words_of_the_glossary_and_of_the_field_are_allowed() -> None:
    """A module may be named by words of either list, in the singular or the plural."""
    assert check("lease_table", "leases", "summaries") == []


def test_a_module_named_by_an_unknown_word_is_refused() -> None:
    """The fault names the path and the word."""
    [fault] = check("lease_helpers")
    assert fault.startswith("lease_helpers.py: 'helpers' stands neither in the glossary")


def test_a_word_that_no_module_uses_is_refused() -> None:
    """The list of words does not outlive the modules."""
    assert check(lines=[*WORDS, "wheel  programs"]) == ["docs/words.txt: 'wheel' is used by no module"]


def test_a_word_of_the_glossary_is_not_listed_again() -> None:
    """Each word has one place."""
    [fault] = check("lease", lines=["dispatch  message queues", "lease  databases", "table  databases"])
    assert fault == "docs/words.txt: 'lease' stands in the glossary already"


def test_the_list_is_sorted_and_says_where_each_word_comes_from() -> None:
    """Two people who add a word add it in the same place, with its reason."""
    faults = check(lines=["table  databases", "dispatch"])
    assert any("which part of the field" in fault for fault in faults)
    assert any("alphabetical order" in fault for fault in faults)


def test_the_glossary_is_the_first_column_of_its_table() -> None:
    """Words elsewhere in the document are not part of it."""
    table = "| word | meaning |\n| --- | --- |\n| Request space | indices |\n"
    assert read_glossary(f"# Title\n\n## The words\n\n{table}\n## Next\n\n| no | x |\n") == {
        "request",
        "space",
    }


def test_packages_and_modules_are_listed_and_what_python_names_is_not(tmp_path: Path) -> None:
    """`__init__.py` has no name of its own, nor has a folder without one."""
    for file in ("room/__init__.py", "room/lease_table.py", "data/page.html"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    assert [words for _, words in list_names([tmp_path])] == [["room"], ["lease", "table"]]
