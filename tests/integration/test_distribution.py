"""What `./task build` makes, installed as users install it, away from the repository and its environment."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from email.parser import HeaderParser
from pathlib import Path

import pytest
from docs.tools.version import VERSION
from tests.kit.requirement import miss
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "core/src/oku_core",
    "coordinator/src/oku_coordinator",
    "workers/src/oku_workers",
    "server/src/oku_server",
    "scenarios/src/oku",
    "cli/src/oku_cli",
)
LOCK = ROOT / "requirements" / "run.txt"
EXTENSION = "oku_workers/speedups/_speedups.abi3.so"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def built() -> Path:
    """The folder with the wheels and the source distribution."""
    subprocess.run([str(ROOT / "task"), "build"], check=True, capture_output=True)
    return ROOT / "dist"


@pytest.fixture(scope="module", params=["py3-none-any", "cp311-abi3-*"])
def wheel(built: Path, request: pytest.FixtureRequest) -> Path:
    """The wheel for all platforms, and that with the extension."""
    wheels = list(built.glob(f"oku-{VERSION}-{request.param}.whl"))
    if not wheels:
        miss("there is no wheel with the extension: nothing here could compile it")
    [wheel] = wheels
    return wheel


def is_compiled(wheel: Path) -> bool:
    """Whether a wheel has the extension."""
    return "-abi3-" in wheel.name


@pytest.fixture(scope="module")
def source(built: Path) -> Path:
    """The source distribution."""
    return built / f"oku-{VERSION}.tar.gz"


def call_uv(*arguments: str | Path) -> None:
    """Call the locked uv, as this machine reaches its package index."""
    command = [str(ROOT / ".tools" / "bin" / "uv"), "--quiet", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def with_dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip and the locked dependencies, on a machine that can fetch them."""
    venv = tmp_path_factory.mktemp("locked") / "venv"
    try:
        call_uv("venv", "--seed", "--python", sys.executable, venv)
        call_uv("pip", "install", "--python", venv, "--require-hashes", "-r", LOCK)
    except subprocess.CalledProcessError as error:
        miss(f"the packages of requirements/run.txt cannot be fetched: {error.stderr.strip()[:300]}")
    return venv


class Installation:
    """An environment with Oku, used from another folder and with nothing of this shell's environment."""

    def __init__(self, venv: Path, folder: Path) -> None:
        self.folder = folder
        self._bin = venv / "bin"
        (folder / "home").mkdir(parents=True)
        # No program of the system is found: the broker has to come with Oku.
        self._environment = {"HOME": str(folder / "home"), "PATH": str(folder / "none"), "LANG": "C.UTF-8"}

    def build_command(self, *arguments: str) -> list[str]:
        """The command line of a call of `oku`."""
        return [str(self._bin / "oku"), *arguments]

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Call `oku` in the background."""
        return subprocess.Popen(
            self.build_command(*arguments),
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: str) -> str:
        """Call `oku` to its end, which has to be a good one; gives what it printed to standard output."""
        with self.start(*arguments) as process:
            output, log = process.communicate(timeout=60)
        assert process.returncode == 0, log
        return output

    def is_compiled(self, **variables: str) -> bool:
        """Whether the httptools engine uses its extension, with these variables in its environment."""
        code = "from oku_workers.speedups.extension import IS_COMPILED; print(IS_COMPILED)"
        command = [str(self._bin / "python"), "-I", "-c", code]
        environment = {**self._environment, **variables}
        output = subprocess.run(command, check=True, capture_output=True, env=environment, text=True).stdout
        return output == "True\n"


@pytest.fixture(scope="module")
def installation(
    wheel: Path, with_dependencies: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installation:
    """The wheel in an environment of its own, with the versions that everything is tested with."""
    assert with_dependencies.exists()
    folder = tmp_path_factory.mktemp("wheel")
    venv = folder / "venv"
    call_uv("venv", "--python", sys.executable, venv)
    call_uv("pip", "install", "--python", venv, "--constraints", LOCK, wheel)
    return Installation(venv, folder / "elsewhere")


@pytest.fixture
def server_url(installation: Installation) -> Iterator[str]:
    """A service to test: the installation's own delay server."""
    ready = installation.folder / "ready"
    with installation.start("server", "--port", "0", "--ready-file", str(ready), "--delay", "5ms") as process:
        wait_until(ready.exists, 20, "the server listens")
        yield f"http://{ready.read_text().strip()}/items/{{i}}"
        process.terminate()


def read_metadata(wheel: Path) -> Mapping[str, list[str]]:
    """The headers of a wheel by name, and as `Description` what package pages show."""
    with zipfile.ZipFile(wheel) as archive:
        message = HeaderParser().parsestr(archive.read(f"oku-{VERSION}.dist-info/METADATA").decode())
    headers = {name: [str(value) for value in message.get_all(name, [])] for name in message}
    return {**headers, "Description": [str(message.get_payload())]}


def test_the_wheel_has_the_six_packages_and_nothing_else(wheel: Path) -> None:
    """Each file of theirs is in it, with their types; no test, no document, no dashboard is."""
    sources = {
        path.relative_to((ROOT / package).parent).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".c", ".h", ".so"}
    }
    if is_compiled(wheel):
        sources.add(EXTENSION)
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    assert {f"{Path(package).name}/py.typed" for package in PACKAGES} <= sources
    assert {name for name in names if ".dist-info/" not in name} == sources
    assert f"oku-{VERSION}.dist-info/licenses/LICENSE" in names


def test_the_extension_names_no_folder_of_the_machine_that_built_it(built: Path) -> None:
    """Neither that of its source nor that of the libraries of Python."""
    for wheel in built.glob("*-abi3-*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(EXTENSION)
        for folder in (
            sys.base_prefix,
            sysconfig.get_config_var("LIBDIR"),
            str(ROOT),
            tempfile.gettempdir() + "/",
        ):
            assert folder.encode() not in content


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    """Its metadata has what an index shows and an installer asks; an index takes only some kinds of Linux."""
    assert "-linux_" not in wheel.name
    metadata = read_metadata(wheel)
    assert metadata["Version"] == [VERSION]
    assert metadata["Requires-Python"] == [">=3.11"]
    assert metadata["License-Expression"] == ["Apache-2.0"]
    assert metadata["Provides-Extra"] == ["kube", "locust"]
    assert metadata["Description-Content-Type"] == ["text/markdown"]


def test_a_package_page_shows_no_dead_link(wheel: Path) -> None:
    """Pictures and links that lead to files of the repository are left out; the texts of the links stay."""
    [description] = read_metadata(wheel)["Description"]
    readme = (ROOT / "README.md").read_text()
    relative = r"\]\((?!https?:)[^)\s]*\)|<img|<picture"
    assert re.findall(relative, readme)
    assert re.findall(relative, description) == []
    assert re.findall(r"^#+ .*$", description, re.MULTILINE) == re.findall(r"^#+ .*$", readme, re.MULTILINE)


def test_the_source_distribution_has_what_builds_the_wheel(source: Path) -> None:
    """And nothing else: no environment, no run, no test."""
    with tarfile.open(source) as archive:
        names = {name.removeprefix(f"oku-{VERSION}/") for name in archive.getnames()}
    folders = tuple(f"{package}/" for package in PACKAGES)
    others = {name for name in names if not name.startswith(folders)}
    assert others == {
        "CHANGELOG.md",
        "LICENSE",
        "README.md",
        "hatch_build.py",
        "pyproject.toml",
        "PKG-INFO",
        ".gitignore",
    }


def test_without_a_compiler_the_wheel_is_of_all_platforms(source: Path, tmp_path: Path) -> None:
    """It says so, and is built all the same."""
    command = [str(ROOT / ".tools" / "bin" / "uv"), "build", "--offline", "--no-build-isolation"]
    command += [
        "--python",
        str(ROOT / ".tools" / "bin" / "python"),
        "--out-dir",
        str(tmp_path),
        "--wheel",
        str(source),
    ]
    environment = {**os.environ, "CC": str(tmp_path / "no-compiler")}
    done = subprocess.run(command, check=True, capture_output=True, env=environment, text=True)
    assert "no-compiler" in done.stderr
    assert [path.name for path in tmp_path.glob("*.whl")] == [f"oku-{VERSION}-py3-none-any.whl"]


def test_an_installation_tells_its_version(installation: Installation) -> None:
    """It is that of the project."""
    assert installation.call("--version") == f"oku {VERSION}\n"


def test_an_installation_uses_the_extension_of_its_wheel(installation: Installation, wheel: Path) -> None:
    """Unless a variable says that it must not."""
    assert installation.is_compiled() == is_compiled(wheel)
    assert not installation.is_compiled(OKU_NO_EXTENSIONS="yes")


def test_an_installation_tests_a_service(installation: Installation, server_url: str) -> None:
    """A run of 200 requests needs nothing but the wheel, and accounts for each."""
    summary = json.loads(installation.call("run", server_url, "-n", "200", "--json"))
    assert_completed(summary)
    assert summary["outcomes"]["ok"] == 200


def test_an_installation_runs_against_its_own_delay_servers(installation: Installation) -> None:
    """Their count is that of the account."""
    summary = json.loads(installation.call("run", "-n", "50", "--json"))
    assert_completed(summary)
    assert summary["servers"]["served"] == 50


def test_pip_installs_the_source_distribution(
    source: Path, wheel: Path, with_dependencies: Path, tmp_path: Path
) -> None:
    """What pip builds from it are the files of the wheel, and they make a run."""
    command = [str(with_dependencies / "bin" / "pip"), "install", "--quiet", "--force-reinstall", "--no-deps"]
    environment = os.environ if is_compiled(wheel) else {**os.environ, "OKU_NO_EXTENSIONS": "yes"}
    subprocess.run([*command, str(source)], check=True, env=environment)
    [packages] = with_dependencies.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(("/", "/RECORD", "/WHEEL")):
                assert (packages / name).read_bytes() == archive.read(name), name
    installation = Installation(with_dependencies, tmp_path / "elsewhere")
    assert_completed(json.loads(installation.call("run", "-n", "50", "--json")))
