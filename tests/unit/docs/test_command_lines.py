import pytest
from docs.tools.command_lines import check, split_commands


def write_block(line: str) -> str:
    """A document with one block of shell."""
    return f"Text.\n\n```sh\n{line}\n```\n"


@pytest.mark.parametrize(
    "line",
    [
        "oku run --requests 100k --url 'http://127.0.0.1:8080/{i}'  # isn't a comment",
        "oku run --requests=10 -- spec.yaml",
        "OKU_TOKEN=secret oku show RUN --json | head -1 && oku runs > runs.txt",
        "oku run \\\n  --requests 5",
        "./task run --requests 5",
        "./task oku -- show RUN",
        "./task test:chaos",
        "docker run --rm localhost/oku/oku:0.1.0 run --requests 5",
        "uvx oku run --requests 5",
        "helm install oku charts/oku --namespace oku",
    ],
)
def test_a_command_line_of_what_exists_is_no_fault(line: str) -> None:
    """Commands, options and tasks are found, whatever starts them; other programs are not looked at."""
    assert list(check(write_block(line))) == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("oku run --reqests 5", "oku run has no option --reqests"),
        ("oku rum", "there is no command rum"),
        ("oku --wrong run", "no --wrong"),
        ("true && oku show RUN --workers 4", "oku show has no option --workers"),
        ("./task run -- --wrong", "oku run has no option --wrong"),
        ("./task oku rum", "there is no command rum"),
        ("./task wrong", "there is no task wrong"),
        ("docker run localhost/oku/oku:0.1.0 rum", "there is no command rum"),
        ("pipx run oku rum", "there is no command rum"),
    ],
)
def test_a_command_line_of_what_does_not_exist_is_a_fault(line: str, fault: str) -> None:
    """The fault says which word is wrong, in a block and in the text."""
    [found] = check(write_block(line))
    assert found.endswith(f": {fault}")
    if line.startswith(("oku", "./task")):
        [found] = check(f"Type `{line}`.")
        assert found.endswith(f": {fault}")


def test_an_option_in_the_text_is_one_of_some_command() -> None:
    """Only decisions may name what is not there."""
    assert list(check("Use `--requests N` or `--error-rate`.")) == []
    assert list(check("Use `--wrong N`.")) == ["no command of oku has an option --wrong"]
    assert list(check("Use `--wrong N`.", is_decision=True)) == []
    # Commands end where the shell ends them.
    source = "a 'b\nc' |d; e && f  # g\nh \\\n  i"
    assert list(split_commands(source)) == [["a", "b\nc"], ["d"], ["e"], ["f"], ["h", "i"]]
