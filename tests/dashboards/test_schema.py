"""The committed dashboards held against Grafana's own types of four majors, by TypeScript's compiler."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.kit.loki.dashboards import FOLDER
from tests.kit.requirement import miss

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_BUILD = _ROOT / "build" / "dashboards"
_ENTRIES = {
    10: "dist/esm/index.d.ts",
    11: "dist/esm/index.d.ts",
    12: "dist/types/index.d.ts",
    13: "dist/types/index.d.ts",
}
"""Where the types of `@grafana/schema` begin, by Grafana's major."""
_STRICT = {
    "strict": True,
    "noEmit": True,
    "target": "es2022",
    "module": "esnext",
    "moduleResolution": "bundler",
    "skipLibCheck": True,
    "types": [],
}
_WRONGS = {
    '"drawStyle": "line"': '"drawStyle": "lines"',
    '"calculate": false': '"calculated": false',
    '"sortOrder": "Descending"': '"sortOrder": "newest"',
    '"refresh": 2': '"refresh": 7',
    '"queryType": "instant"': '"queryType": "once"',
    '"schemaVersion": 38': '"schemaVersion": "38"',
    '"mode": "fixed"': '"mode": "fix"',
    '"graphMode": "none"': '"graphMode": "nothing"',
}
"""What is right in a dashboard, and how it would be wrong."""


@pytest.fixture(scope="module")
def project() -> Path:
    """A folder with the compiler and the types, installed once for a lock file."""
    if shutil.which("npm") is None:
        miss("there is no npm: the dashboards cannot be held against Grafana's types")
    lock = (_HERE / "package-lock.json").read_text()
    installed = _BUILD / "installed-lock.json"
    if not installed.exists() or installed.read_text() != lock:
        _BUILD.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_HERE / name, _BUILD)
        _run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"])
        installed.write_text(lock)
    return _BUILD


@pytest.mark.timeout(600)
@pytest.mark.parametrize("major", _ENTRIES)
def test_dashboards_are_what_grafanas_types_want(project: Path, major: int) -> None:
    """Each name is known and each value has its type, in every major version that the dashboards support."""
    texts = {path.stem: path.read_text() for path in FOLDER.glob("*.json")}
    assert len(texts) == 4
    assert _compile(project, major, texts) == ""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("major", _ENTRIES)
def test_wrong_dashboards_are_found(project: Path, major: int) -> None:
    """The check can fail: a misspelt name and a wrong value are errors."""
    text = (FOLDER / "oku-run.json").read_text()
    assert all(right in text for right in _WRONGS)
    texts = {
        f"wrong-{number}": text.replace(right, wrong, 1)
        for number, (right, wrong) in enumerate(_WRONGS.items())
    }
    said = _compile(project, major, texts)
    for name, wrong in zip(texts, _WRONGS.values(), strict=True):
        assert f"{name}.ts(" in said, wrong


def _compile(project: Path, major: int, texts: Mapping[str, str]) -> str:
    """What the compiler says of dashboards with the types of a major; empty when it is content."""
    folder = project / f"grafana-{major}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(_HERE / "dashboard.ts", folder)
    head = 'import type { OkuDashboard } from "./dashboard";'
    for name, text in texts.items():
        assert json.loads(text)
        source = f"{head}\nexport const dashboard: OkuDashboard = {text};\n"
        (folder / f"{name}.ts").write_text(source)
    schema = f"../node_modules/schema-{major}"
    paths = {"@grafana/schema": [f"{schema}/{_ENTRIES[major]}"], "@grafana/schema/*": [f"{schema}/*"]}
    config = {"compilerOptions": {**_STRICT, "paths": paths}, "files": [f"{name}.ts" for name in texts]}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    command = ["node_modules/.bin/tsc", "-p", str(folder)]
    result = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    return result.stdout


def _run(command: list[str]) -> None:
    result = subprocess.run(command, cwd=_BUILD, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
