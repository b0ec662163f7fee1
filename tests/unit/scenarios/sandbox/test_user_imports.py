import importlib
import sys
import types
from pathlib import Path
from textwrap import dedent

import pytest
from tests.kit.library_names import list_library_names

from oku.sandbox.user_module import load_module

NAMES = list_library_names()


def load(folder: Path, text: str, file: str = "buy.py") -> types.ModuleType:
    """Load a scenario."""
    (folder / file).write_text(dedent(text))
    return load_module(folder, file)


def test_user_code_gets_its_own_files_whatever_their_names(tmp_path: Path) -> None:
    """No module of Oku or Python hides them."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"OWN = {name!r}\n")
    module = load(tmp_path, "\n".join(f"import {name}" for name in NAMES))
    wrong = [name for name in NAMES if getattr(getattr(module, name), "OWN", None) != name]
    assert not wrong


def test_all_other_code_gets_the_library(tmp_path: Path) -> None:
    """This holds for code that is loaded after user code, even if user code has imported its file by then."""
    late = [name for name in ("wave", "plistlib", "mailbox", "colorsys", "sched") if name not in sys.modules]
    assert late, "all of them are loaded already"
    loaded = dict(sys.modules)
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"OWN = {name!r}\n")
    load(tmp_path, "\n".join(f"import {name}" for name in NAMES))
    assert not [name for name in loaded if sys.modules[name] is not loaded[name]]
    assert not [name for name in late if hasattr(importlib.import_module(name), "OWN")]


@pytest.mark.parametrize("name", ["http", "token", "calendar", "json", "msgspec", "oku", "sys"])
def test_a_scenario_may_have_any_name(tmp_path: Path, name: str) -> None:
    """It does not replace the library, which it may import itself."""
    library = importlib.import_module(name)
    module = load(tmp_path, f"import {name} as library", f"{name}.py")
    assert sys.modules[name] is library
    assert module.library is library
    assert module is sys.modules[module.__name__]


def test_a_file_that_imports_its_own_name_wants_the_library(tmp_path: Path) -> None:
    """It may extend the library."""
    (tmp_path / "json.py").write_text("from json import dumps\nimport json.decoder\nOWN = dumps([1])\n")
    assert load(tmp_path, "import json\nFOUND = json.OWN").FOUND == "[1]"


def test_a_package_may_have_any_name(tmp_path: Path) -> None:
    """Its modules are imported by its name, and by what they are to each other."""
    package = tmp_path / "email"
    package.mkdir()
    (package / "__init__.py").write_text("from email.to import TO\nfrom . import subject\n")
    (package / "to.py").write_text("TO = 'a'\n")
    (package / "subject.py").write_text("from .to import TO\nSUBJECT = TO * 2\n")
    text = """
        import email
        import email.subject as third
        import email.to
        from email import subject as second, TO as first
        from email.subject import SUBJECT as fourth
    """
    module = load(tmp_path, text)
    assert [module.first, module.second.SUBJECT, module.third.SUBJECT, module.fourth] == ["a", *["aa"] * 3]
    assert module.email.to.TO == "a"
    assert not hasattr(importlib.import_module("email"), "TO")


def test_modules_beside_user_code_find_each_other(tmp_path: Path) -> None:
    """Those whose name nobody has are there for every import; those beside the file go first."""
    (tmp_path / "sub").mkdir()
    for name, text in {
        "sub/tea.py": "import token, cup\nOWN = token.OWN + cup.OWN\n",
        "token.py": "OWN = 'token '\n",
        "cup.py": "OWN = 'far '\n",
        "sub/cup.py": "OWN = 'near '\n",
    }.items():
        (tmp_path / name).write_text(text)
    text = """
        import importlib
        import tea
        FOUND = tea.OWN
        SAME = importlib.import_module("tea") is tea
    """
    module = load(tmp_path, text, "sub/buy.py")
    assert module.FOUND == "token near "
    assert module.SAME


def test_a_folder_that_is_no_package_gives_way(tmp_path: Path) -> None:
    """As in Python: there may be data in it."""
    (tmp_path / "json").mkdir()
    (tmp_path / "stock").mkdir()
    (tmp_path / "stock" / "item.py").write_text("OWN = 1\n")
    module = load(tmp_path, "import json\nimport stock.item\nFOUND = stock.item.OWN\n")
    assert module.json is sys.modules["json"]
    assert module.FOUND == 1


def test_what_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    """The name is that which stands in the file."""
    (tmp_path / "token.py").write_text("")
    text = """
        def catch(name):
            try:
                __import__(name, globals(), locals(), ["a"], 0)
            except ImportError as error:
                return str(error)
        FOUND = [catch("no_such_module"), catch("token.missing")]
    """
    first, second = load(tmp_path, text).FOUND
    assert first == "No module named 'no_such_module'"
    assert second == "No module named 'oku_user_code.token.missing'; 'oku_user_code.token' is not a package"
