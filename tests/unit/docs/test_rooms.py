from pathlib import Path

from docs.tools.rooms import build_rooms_table, check_rooms

CONTRACTS = """
[importlinter]
root_packages =
    one

[importlinter:contract:packages]
type = layers
layers =
    top
    left | right

[importlinter:contract:rooms]
type = layers
containers =
    one
layers =
    api
    (kube) : loki

[importlinter:contract:inner-rooms]
type = layers
containers =
    one.api
layers =
    routes
    server

[importlinter:contract:full-names]
type = layers
layers =
    two.api
    two.ledger

[importlinter:contract:other]
type = forbidden
"""


def test_each_contract_of_layers_is_a_row_with_its_floors_from_the_top_down(tmp_path: Path) -> None:
    """Rooms of a package lose its name; packages within it and other kinds of contracts are left out."""
    assert build_rooms_table(CONTRACTS).splitlines()[2:] == [
        "| between the packages | `top` → `left` · `right` |",
        "| `one` | `api` → `kube` · `loki` |",
        "| `two` | `api` → `ledger` |",
    ]
    # The rooms that are described are the folders of the package.
    for room in ("api", "ledger", "ledger/rules"):
        (tmp_path / "two" / room).mkdir(parents=True)
        (tmp_path / "two" / room / "__init__.py").touch()
    table = "| room of `two` | holds |\n| --- | --- |\n| `api` | calls |\n| `ledger.rules` | laws |\n"
    text = f"{table}| `ledger` | rows |\n\nMore.\n"
    assert list(check_rooms(text, [tmp_path / "two"])) == []
    [fault] = check_rooms(f"{table}| `loki` | lines |\n\nMore.\n", [tmp_path / "two"])
    assert fault.endswith("differ from its folders: ledger, loki")
