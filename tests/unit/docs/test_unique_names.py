from docs.tools.house.tree import Tree
from docs.tools.unique_names import find_faults

ACCOUNT, OTHER = "core/src/oku_core/accounting/account.py", "cli/src/oku_cli/views/account.py"


def test_a_public_name_has_one_place() -> None:
    """The message names all places; private names, methods and nested functions may repeat."""
    text = "class Account:\n    def add(self): ...\nclass _Row: ...\ndef build(): ...\ndef _check(): ...\n"
    assert list(find_faults(Tree({ACCOUNT: text, OTHER: text}))) == [
        f"class Account has several places: {ACCOUNT}:1, {OTHER}:1",
        f"function build has several places: {ACCOUNT}:4, {OTHER}:4",
        f"module account has several places: {ACCOUNT}:1, {OTHER}:1",
    ]


def test_a_role_repeats_within_its_folder_alone() -> None:
    """The same name elsewhere is a fault."""
    engines = [f"workers/src/oku_workers/engines/{name}/engine.py" for name in ("aiohttp", "nghttp2")]
    assert not list(find_faults(Tree(dict.fromkeys(engines, ""))))
    elsewhere = "core/src/oku_core/engine.py"
    assert list(find_faults(Tree(dict.fromkeys([*engines, elsewhere], "")))) == [
        f"module engine has several places: {engines[0]}:1, {engines[1]}:1, {elsewhere}:1"
    ]
