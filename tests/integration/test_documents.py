"""What the documents show is done: blocks of shell are typed, files are read, examples are checked."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import jsonschema
import pytest
import yaml
from docs.tools.references import ROOT, list_documents
from tests.kit.documents.blocks import Block, Mark, read_blocks
from tests.kit.documents.terminal import opening_terminal
from tests.kit.mappings import merge

from oku_cli.options.spec.code_scan import read_code
from oku_cli.options.spec.data_scan import scanned
from oku_cli.options.spec.file_values import ReadSources
from oku_cli.options.spec.spec_file import SPEC_FILE
from oku_cli.yaml_reader import decode_yaml
from oku_core.errors import UserError
from oku_core.spec.parser import Source, parse_spec

BLOCKS = {page: list(read_blocks(page)) for page in list_documents()}
ALL = [block for blocks in BLOCKS.values() for block in blocks]
CHART = ROOT / "charts" / "oku"
NEVER_CHECKED = {"mermaid", "promql"}
"""Pictures, and queries of a Prometheus."""


KINDS = {
    r"\d{6}-\d{6}-\w{4}": r"\d{6}-\d{6}-\w{4}",
    r"\d[\d,.:-]*(?: ?(?:µs|ms|s)\b)?": r"\d[\d,.:-]*(?: ?(?:µs|ms|s)\b)?",
    r"[▏▎▍▌▋▊▉█]+": "[▏▎▍▌▋▊▉█]*",
    r"\s+": r"\s+",
    "…": ".*",
}
"""What differs from run to run, and what may be in its place."""
VARIABLE = re.compile(f"({'|'.join(KINDS)})")


GIVEN = {
    "scenario.py": """\
from oku import Http


async def scenario(http: Http) -> None:
    await http.get("http://127.0.0.1:8080/items/{i}", name="item")
""",
    "locustfile.py": """\
from locust import FastHttpUser, task


class Visitor(FastHttpUser):
    @task
    def visit(self):
        self.client.get("/")
""",
}
"""User code that pages may name without showing it."""


def is_typed(block: Block) -> bool:
    """Whether a test can type it."""
    return block.language == "sh" and Mark.NOT_RUN not in block.marks


def list_blocks(language: str) -> list[Block]:
    """The blocks of a language that something checks."""
    return [block for block in ALL if block.language == language and Mark.NOT_RUN not in block.marks]


TYPED = {page: blocks for page, blocks in BLOCKS.items() if any(map(is_typed, blocks))}


def build_pattern(line: str) -> str:
    """What a line of printed output may look like: other figures, ids, widths; anything for an ellipsis."""
    parts = VARIABLE.split(line.strip())
    return "".join(
        re.escape(part)
        if number % 2 == 0
        else next(p for kind, p in KINDS.items() if re.fullmatch(kind, part))
        for number, part in enumerate(parts)
    )


def assert_looks_like(printed: str, shown: str) -> None:
    """Each line that is shown is printed, in this order."""
    lines = iter([line.strip() for line in printed.splitlines()])
    for line in filter(str.strip, shown.splitlines()):
        pattern = build_pattern(line)
        assert any(re.fullmatch(pattern, other) for other in lines), f"{line!r} is not printed:\n{printed}"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", TYPED, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_says_can_be_typed(page: Path, tmp_path: Path) -> None:
    """The blocks of a page are typed one after the other, and end as the page says.

    Runs that a block shows one below the other go beside each other, each in a data folder of its own.
    """
    blocks = TYPED[page]
    printed = ""
    for name, text in GIVEN.items():
        (tmp_path / name).write_text(text)
    with opening_terminal(tmp_path, list_texts(blocks)) as terminal:
        for block in blocks:
            if Mark.FILE in block.marks:
                (tmp_path / block.marks[Mark.FILE]).write_text(terminal.fill_in(block.content))
            elif Mark.OUTPUT in block.marks:
                assert_looks_like(printed, block.content)
            elif is_typed(block):
                ended = terminal.type(block)
                printed = ended.printed
                expected = int(block.marks.get(Mark.EXIT_CODE, 0))
                assert ended.exit_code == expected, f"{block.place}: {ended.exit_code}: {printed}"


def test_the_first_command_of_the_readme_makes_a_run(tmp_path: Path) -> None:
    """`./task run` needs nothing but the clone, and takes the options of `oku run`."""
    command = [
        *shlex.split(BLOCKS[ROOT / "README.md"][0].content.splitlines()[0], comments=True),
        "-n",
        "300",
    ]
    assert command[:2] == ["./task", "run"]
    environment = os.environ | {"OKU_DATA_DIR": str(tmp_path / "runs")}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "300 of 300 accounted" in ended.stdout


def list_texts(blocks: Sequence[Block]) -> list[str]:
    """What is typed or used on a page."""
    return [block.content for block in blocks if is_typed(block) or Mark.FILE in block.marks]


@pytest.mark.parametrize("block", list_blocks("yaml"), ids=lambda block: block.place)
def test_what_a_page_shows_of_a_file_is_valid(block: Block, tmp_path: Path) -> None:
    """A spec is read by its parser, unless it shows a mistake; values of the chart have its schema.

    Of objects of Kubernetes, which tests/cluster applies, the specs in ConfigMaps are read.
    """
    for other in next(blocks for blocks in BLOCKS.values() if block in blocks):
        if name := other.marks.get(Mark.FILE):
            (tmp_path / name).write_text(other.content)
    if Mark.VALUES in block.marks:
        schema = json.loads((CHART / "values.schema.json").read_text())
        defaults = yaml.safe_load((CHART / "values.yaml").read_text())
        jsonschema.validate(merge(defaults, yaml.safe_load(block.content)), schema)
    elif Mark.MANIFESTS in block.marks:
        for spec in list_specs(block):
            parse_spec(Source("load.yaml", decode_yaml(spec.encode(), SPEC_FILE)))
    else:
        with pytest.raises(UserError) if Mark.REFUSED in block.marks else nullcontext():
            source = Source(str(tmp_path / "spec.yaml"), decode_yaml(block.content.encode(), SPEC_FILE))
            with scanned(read_code(ReadSources([source], []))) as read:
                parse_spec(*read.sources)


def list_specs(block: Block) -> list[str]:
    """The specs in the ConfigMaps of a block."""
    maps = [each for each in yaml.safe_load_all(block.content) if each["kind"] == "ConfigMap"]
    return [text for each in maps for text in each["data"].values()]


@pytest.mark.parametrize("block", list_blocks("json"), ids=lambda block: block.place)
def test_what_a_page_shows_of_a_summary_has_its_schema(block: Block) -> None:
    """An example has every field that is required, and no value of another type."""
    content = json.loads(block.content)
    if Mark.SUMMARY in block.marks:
        jsonschema.validate(content, json.loads((ROOT / "docs" / "summary.schema.json").read_text()))
    else:
        assert Mark.FILE in block.marks


@pytest.mark.parametrize("page", BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_is_checked_or_says_why_not(page: Path) -> None:
    """A new block is neither overlooked nor left out in silence."""
    assert page.read_text().count("```") == 2 * len(BLOCKS[page]), (
        "a fence is indented, or a mark is misplaced"
    )
    for block in BLOCKS[page]:
        known = block.language in {"sh", "yaml", "json"} | NEVER_CHECKED
        assert known or {Mark.OUTPUT, Mark.FILE} & set(block.marks), (
            f"{block.place}: nothing checks a block of this kind"
        )
        assert block.marks.get(Mark.NOT_RUN) != "", f"{block.place}: the reason is missing"
