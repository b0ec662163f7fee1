from collections.abc import Mapping
from pathlib import Path

import pytest

from oku_cli.options.spec.code_scan import read_code
from oku_cli.options.spec.data_scan import scanned
from oku_cli.options.spec.file_values import read_files
from oku_core.errors import UserError, format_value
from oku_core.spec.files import list_files
from oku_core.spec.parser import Source, build_mapping, parse_spec
from oku_core.spec.spec import Engine, Hook, Spec

FILES = {
    "scenario.py": "import helpers\ndef setup(http): pass\nasync def scenario(index): pass\n",
    "helpers.py": "",
    "plain.py": "async def scenario(index): pass\n",
    "rows.py": "async def scenario(\n    row): pass\n",
    "locustfile.py": "from locust import HttpUser\nclass A(HttpUser): pass\n",
    "files/a.json": "{}",
    "files/b.txt": "b",
    "ids.csv": "id,name\n1,a\n2,b\n",
    "ids.jsonl": '{"id": 1, "x": 2}\n{"id": 2}\n',
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is called, with user code."""
    inner = tmp_path / "here"
    for name, text in FILES.items():
        (inner / name).parent.mkdir(parents=True, exist_ok=True)
        (inner / name).write_text(text)
    (tmp_path / "outside.py").write_text("async def scenario(index): pass\n")
    monkeypatch.chdir(inner)
    return inner


def read(*sources: Source | Mapping[str, object]) -> Spec:
    """The spec of sources; mappings are those of the command line."""
    given = [each if isinstance(each, Source) else Source(None, each) for each in sources]
    with scanned(read_code(read_files(given))) as result:
        spec = parse_spec(*result.sources)
        assert {file.reference for file in result.files} == set(list_files(spec))
    return spec


def read_fault(*sources: Source | Mapping[str, object]) -> str:
    """The one line that says what is wrong."""
    with pytest.raises(UserError) as caught:
        read(*sources)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("source", [Source(None, {}), Source("spec.yaml", {}), Source("standard input", {})])
def test_a_scenario_becomes_files_of_the_run(source: Source) -> None:
    """With the modules that it imports, its engine and its hooks; a spec file may name it as well."""
    spec = read(Source(source.label, {"scenario": "scenario.py", "engine": "auto"}))
    assert spec.scenario is not None
    assert (spec.scenario.path, spec.engine, spec.hooks) == ("scenario.py", Engine.PYTHON, (Hook.SETUP,))
    assert [code.path for code in spec.include] == ["helpers.py"]
    assert spec.include[0].file.size == 0


def test_paths_are_those_from_the_folder_of_the_scenario(folder: Path) -> None:
    """Wherever the command is called, and wherever the spec file is."""
    for source in (
        Source(None, {"scenario": "../here/scenario.py", "include": [str(folder / "files")]}),
        Source("../spec.yaml", {"scenario": "here/scenario.py", "include": "here/files"}),
    ):
        spec = read(source)
        assert [code.path for code in spec.include] == ["helpers.py", "files/a.json", "files/b.txt"]
    # A file that is imported and included comes once. Two files of one path are none.
    spec = read({"scenario": "scenario.py", "include": ["helpers.py", "files/a.json", "files"]})
    assert [code.path for code in spec.include] == ["helpers.py", "files/a.json", "files/b.txt"]
    # A locustfile is told by what it imports. Nobody has to say so.
    spec = read({"scenario": "locustfile.py", "users": "200", "iterations": "1M", "user-classes": ["A"]})
    assert (spec.engine, spec.requests, spec.concurrency, spec.hooks) == (Engine.LOCUST, 10**6, 200, ())
    # A flag overrides the scenario of a file. What the one in the file is does not matter.
    file = Source("spec.yaml", {"scenario": "none.py", "users": 7})
    spec = read(file, {"scenario": "plain.py"})
    assert spec.scenario is not None
    assert (spec.scenario.path, spec.include, spec.concurrency) == ("plain.py", (), 7)
    included = read(Source("spec.yaml", {"scenario": "plain.py", "include": "files"}), {"include": "ids.csv"})
    assert [code.path for code in included.include] == ["ids.csv"]
    # A spec of a run is taken as it is.
    spec = read({"scenario": "scenario.py"})
    mapping = build_mapping(spec)
    assert parse_spec(*read_code(read_files([Source("again", mapping)])).sources) == spec


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"scenario": "none.py"}, "none.py: No such file or directory"),
        ({"scenario": "files"}, "files: is not a regular file"),
        ({"scenario": "helpers.py"}, "helpers.py: has neither an async def scenario nor users of Locust"),
        ({"scenario": ""}, "--scenario: '' is not the path of a file"),
        ({"scenario": "a\0.py"}, r"--scenario: 'a\x00.py' is not the path of a file"),
        ({"scenario": "rows.py"}, "rows.py:2: scenario: takes row, but data is not given"),
        ({"scenario": "plain.py", "engine": "locust"},
         "--engine: locust does not run plain.py, which is a Python scenario"),
        ({"scenario": "locustfile.py", "engine": "python"},
         "--engine: python does not run locustfile.py, which is a locustfile"),
        ({"scenario": "plain.py", "engine": "httptools"},
         "--engine: httptools does not run plain.py, which is a Python scenario"),
        ({"scenario": "plain.py", "include": "../outside.py"},
         "--include: ../outside.py: is not in the folder of plain.py or below it"),
        ({"scenario": "plain.py", "include": "none"}, "none: No such file or directory"),
        ({"include": "files"}, "--include: applies only to user code: a scenario or a locustfile"),
        ({"scenario": f"a.py@sha256:{'0' * 64}:1:a.py", "include": "files"},
         "--include: cannot be combined with a scenario that is a file of a run already"),
        ({"scenario": "plain.py", "users": 5, "concurrency": 5},
         "--users: cannot be combined with concurrency, which is the same"),
        (
            {"scenario": "plain.py", "data": "ids.csv", "requests": 3},
            (
                "--data: ids.csv has 2 rows, fewer than the 3 iterations of this run; "
                "ids.csv:repeat starts over after the last row"
            ),
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_one_line(values: Mapping[str, object], fault: str) -> None:
    """It names the place, and what is allowed."""
    assert read_fault(values).endswith(fault)


def test_a_spec_file_names_only_what_is_beside_it(folder: Path) -> None:
    """It may be somebody else's; a link or an import leads nowhere else."""
    there = "is not in the folder of the spec file or below it"
    assert read_fault(Source("spec.yaml", {"scenario": "../outside.py"})).startswith(
        f"spec.yaml: scenario: ../outside.py {there}"
    )
    (folder / "files" / "link.py").symlink_to(folder.parent / "outside.py")
    assert read_fault(Source("spec.yaml", {"scenario": "plain.py", "include": "files"})).endswith(there)
    (folder / "helpers.py").unlink()
    (folder / "helpers.py").symlink_to(folder.parent / "outside.py")
    assert read_fault(Source("spec.yaml", {"scenario": "scenario.py"})).endswith(there)
    assert read({"scenario": "scenario.py"}).include[0].path == "helpers.py"


@pytest.mark.parametrize("name", ["a\nb", "a@sha256:b", "a\udcff"])
def test_a_file_whose_name_cannot_come_along_is_told_in_one_line(folder: Path, name: str) -> None:
    """It is the name that is wrong, not the place."""
    (folder / "files" / name).touch()
    assert read_fault({"scenario": "plain.py", "include": "files"}) == (
        f"--include: files: {format_value(f'files/{name}')} is not a path of up to 400 printable characters"
        " without @sha256:"
    )


def test_a_loop_of_links_is_told_in_one_line(folder: Path) -> None:
    """Within a folder, and as the scenario."""
    (folder / "files" / "loop").symlink_to("loop")
    (folder / "loop.py").symlink_to("loop.py")
    loops = "Too many levels of symbolic links"
    assert read_fault({"scenario": "plain.py", "include": "files"}) == f"files/loop: {loops}"
    assert read_fault({"scenario": "plain.py", "include": "loop.py"}) == f"loop.py: {loops}"
    assert read_fault({"scenario": "loop.py"}) == "loop.py: No such file or directory"
    assert read_fault(Source("spec.yaml", {"scenario": "loop.py"})).startswith("spec.yaml: scenario: loop.py")


def test_all_columns_of_data_count_as_used(folder: Path) -> None:
    """Nobody knows what user code reads; its texts have no placeholders."""
    spec = read({"scenario": "rows.py", "data": "ids.csv", "header": "X: {nothing}"})
    assert spec.data is not None
    assert (spec.requests, spec.data.columns) == (2, ("id", "name"))
    assert read_fault({"scenario": "rows.py", "data": "ids.jsonl"}) == "ids.jsonl:2: has no x"
    # A locustfile finds modules where the command is called.
    (folder / "load").mkdir()
    (folder / "load" / "locustfile.py").write_text("import locust, helpers")
    spec = read({"scenario": "load/locustfile.py"})
    assert [code.path for code in spec.include] == ["helpers.py"]
    (folder / "load" / "scenario.py").write_text("import helpers\nasync def scenario(): pass")
    assert read({"scenario": "load/scenario.py"}).include == ()
    assert read(Source("load/spec.yaml", {"scenario": "locustfile.py"})).include == ()
