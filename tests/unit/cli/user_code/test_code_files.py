import ast
import warnings
from pathlib import Path

import pytest

from oku_cli.user_code.code_files import (
    MOST_FILES,
    MOST_TOTAL_BYTES,
    ImportedModules,
    check_total,
    iter_module_statements,
    list_included,
    parse_python,
)
from oku_core.errors import UserError


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"a = 1\nb = (\n", "a.py:2: is not Python: '(' was never closed"),
        (b"def f(:\n    pass", "a.py:1: is not Python: invalid syntax"),
        (b"a = '\xff'\n", "a.py:1: is not Python: (unicode error)"),
        (b"a = 1\0", "a.py: is not Python: source code string cannot contain null bytes"),
        (b"-" * 100_000 + b"1", "a.py: is not Python: "),
    ],
)
def test_what_is_not_python_is_told_in_one_line(content: bytes, fault: str) -> None:
    """It names the file, and the line if there is one."""
    with pytest.raises(UserError) as caught:
        parse_python(content, "a.py")
    assert str(caught.value).startswith(fault)
    assert str(caught.value).isprintable()


def test_what_is_carried_out_on_import_is_found_in_blocks() -> None:
    """What stands in functions and classes is not."""
    tree = parse_python(
        b"if True:\n  def a(): pass\nelse:\n  def b(): pass\n"
        b"try:\n  def c(): pass\nexcept E:\n  def d(): pass\nfinally:\n  def e(): pass\n"
        b"class F:\n  def g(): pass\ndef h():\n  def i(): pass\n",
        "a.py",
    )
    names = [node.name for node in iter_module_statements(tree) if isinstance(node, ast.FunctionDef)]
    assert sorted(names) == ["a", "b", "c", "d", "e", "h"]
    # A warning of the compiler is not printed. It comes when the code runs, once for each worker at most.
    with warnings.catch_warnings(action="error"):
        assert parse_python(b'a = "\\d"\n', "a.py").body


def write(folder: Path, **files: str) -> Path:
    """Write files, whose paths have `__` between folders; gives the path of `main.py`."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "main.py"


def find(folder: Path, **files: str) -> list[str]:
    """The modules that `main.py` needs."""
    return list(ImportedModules(write(folder, **files), "main.py").paths)


@pytest.mark.parametrize(
    "statement",
    [
        "import a",
        "import a as b",
        "import os, a",
        "from a import *",
        "from a import x",
        "def f():\n    import a",
        "try:\n    import a\nexcept ImportError:\n    pass",
    ],
)
def test_a_module_beside_the_file_is_found(tmp_path: Path, statement: str) -> None:
    """However it is imported; what is not beside the file is somebody else's."""
    assert find(tmp_path, main=statement, a="import json, numpy", other="") == ["a.py"]


def test_a_module_of_a_package_comes_with_the_packages_around_it(tmp_path: Path) -> None:
    """These are imported first; one without `__init__.py` is a package, too."""
    (tmp_path / "pkg" / "sub").mkdir(parents=True)
    (tmp_path / "pkg" / "__init__.py").write_text("from . import more")
    (tmp_path / "pkg" / "more.py").write_text("from ..nowhere import x\nfrom ...above import y")
    (tmp_path / "pkg" / "unused.py").write_text("")
    (tmp_path / "pkg" / "sub" / "deep.py").write_text("from ..near import x\nfrom .beside import y")
    (tmp_path / "pkg" / "sub" / "beside.py").write_text("")
    (tmp_path / "pkg" / "near.py").write_text("")
    assert find(tmp_path, main="import pkg.sub.deep") == [
        "pkg/__init__.py", "pkg/more.py", "pkg/near.py", "pkg/sub/beside.py", "pkg/sub/deep.py",
    ]  # fmt: skip


def test_modules_of_modules_are_found_also_in_a_circle(tmp_path: Path) -> None:
    """Each once."""
    assert find(tmp_path, main="import a", a="import b", b="import a, main, c", c="") == [
        "a.py", "b.py", "c.py",
    ]  # fmt: skip
    # A name of a package may be a module of it.
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "mod.py").write_text("")
    (tmp_path / "pkg" / "other.py").write_text("")
    assert find(tmp_path, main="from pkg import mod, name") == ["pkg/mod.py"]
    # A package comes before a module of the same name. As Python has it.
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "__init__.py").write_text("")
    assert find(tmp_path, main="import a", a="") == ["a/__init__.py"]


def test_a_module_that_is_not_python_is_named_as_the_user_would(tmp_path: Path) -> None:
    """The command names files from where it is called."""
    path = write(tmp_path, main="import a", a="x = (\n")
    with pytest.raises(UserError, match=r"^tests/a\.py:1: is not Python"):
        ImportedModules(path, "tests/main.py")


def test_packages_of_others_are_told_from_modules_of_that_name(tmp_path: Path) -> None:
    """A module beside the file may begin as they do."""
    plain = {"main": "import locust_words", "locust_words": ""}
    assert not ImportedModules(write(tmp_path, **plain), "main.py").imports_package("locust")
    deep = {"main": "import own", "own": "from locust_plugins.users import RestUser"}
    assert ImportedModules(write(tmp_path, **deep), "main.py").imports_package("locust")


def test_the_packages_of_user_code_are_no_files_beside_it(tmp_path: Path) -> None:
    """A file called as one of them wants the package, as every other file does."""
    files = {"main": "import locust, oku, token", "locust": "", "oku": "", "token": ""}
    assert find(tmp_path, **files) == ["token.py"]
    path = write(tmp_path, locust="from locust import User").with_name("locust.py")
    assert ImportedModules(path, "locust.py").imports_package("locust")


def test_modules_may_be_elsewhere(tmp_path: Path) -> None:
    """What is beside the file goes first; a package is one as a whole, and goes before a mere folder."""
    near, far = tmp_path / "near", tmp_path / "far"
    path = write(near, main="import a, b\nfrom shop import paths, cart\nfrom tests.load import c", a="")
    (near / "shop").mkdir()
    write(far, a="", b="import a, d", d="", main="", shop__paths="", tests__load__c="")
    (far / "shop" / "__init__.py").write_text("")
    modules = ImportedModules(path, "main.py", [far]).paths
    assert modules == {
        "a.py": near / "a.py", "b.py": far / "b.py", "d.py": far / "d.py",
        "shop/__init__.py": far / "shop/__init__.py", "shop/paths.py": far / "shop/paths.py",
        "tests/load/c.py": far / "tests/load/c.py",
    }  # fmt: skip
    (far / "d.py").write_text("a b")
    with pytest.raises(UserError, match=f"^{far / 'd.py'}:1: is not Python"):
        ImportedModules(path, "main.py", [far])


def test_a_file_is_included_alone_and_a_folder_without_hidden_files(tmp_path: Path) -> None:
    """Also one that would be left out of a folder."""
    (tmp_path / ".env").write_text("")
    assert list_included(tmp_path / ".env", "x") == [tmp_path / ".env"]
    # A folder is included without caches and hidden files.
    for name in ("b.json", "a/c.txt", ".git/x", ".env", "__pycache__/m.pyc", "m.pyc", "a/node_modules/y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert list_included(tmp_path, "x") == [tmp_path / "a" / "c.txt", tmp_path / "b.json"]


def test_what_is_included_has_a_bound(tmp_path: Path) -> None:
    """Each file stands in the spec."""
    with pytest.raises(UserError, match=r"^x: has no files$"):
        list_included(tmp_path, "x")
    for number in range(MOST_FILES + 1):
        (tmp_path / str(number)).touch()
    with pytest.raises(UserError, match=r"^x: has more than 1,000 files$"):
        list_included(tmp_path, "x")
    # User code has a bound. Each worker has a copy of all of it.
    check_total(MOST_TOTAL_BYTES, MOST_FILES, "x")
    with pytest.raises(UserError, match=r"^x: with what it imports and includes these are 1,001 files, "):
        check_total(0, MOST_FILES + 1, "x")
    with pytest.raises(UserError, match=r"^x: with what it imports and includes these are 256 MiB, "):
        check_total(MOST_TOTAL_BYTES + 1, 1, "x")
