import pytest
from docs.tools.owned_names import check, find_faults, list_files
from docs.tools.references import ROOT, list_documents


@pytest.mark.heavy
def test_no_file_names_what_a_stranger_could_register() -> None:
    """All documents are read, and what is fetched by default."""
    files = list_files()
    assert set(files) >= set(list_documents())
    assert set(files) >= {ROOT / "charts/oku/values.yaml", ROOT / "Taskfile.yml", ROOT / ".ci/run"}
    assert find_faults() == []


def test_a_name_that_nobody_owns_is_found() -> None:
    """Hosts, addresses, repositories, actions, images and packages; each alone, and once."""
    cases = {
        "see https://oku.dev/docs": "the host oku.dev is neither known nor an example",
        "helm repo add oku https://charts.oku.io": "the host charts.oku.io is neither known nor an example",
        "helm pull oci://ghcr.io/oku/chart": "the host ghcr.io is neither known nor an example",
        "http://me:pw@shop.com/": "the host shop.com is neither known nor an example",
        "https://example.com.evil.net/": "the host example.com.evil.net is neither known nor an example",
        "git clone https://github.com/oku/oku": "github.com/oku has no owner that we know",
        "mail security@oku.dev": "the host of an e-mail address, oku.dev, is not an example",
        "  - uses: oku/run-action@v1": "github.com/oku has no owner that we know",
        "image: docker.io/oku/worker:1": "docker.io/oku has no owner that we know",
        "image: oku:0.1.0": "oku:0.1.0 would come from a stranger",
        "FROM okubase:1": "okubase:1 would come from a stranger",
        "docker run --rm oku/oku run": "the image oku/oku is not ours: name localhost/oku/oku",
        "docker run ghcr.io/oku/oku": "the image ghcr.io/oku/oku is not ours: name localhost/oku/oku",
        "docker run --rm -v oku:/data oku run": "would come from a stranger: give a path",
        "podman pull oku:0.1.0": "would come from a stranger: give a path",
        "pip install oku": "oku would come from a stranger",
        "v/bin/pip install -q 'oku[locust]'": "would come from a stranger",
        "pip install locust oku==0.1.0": "would come from a stranger",
        "pipx run oku run": "would come from a stranger",
        "uvx oku@latest run": "would come from a stranger",
        "uvx --from oku oku run": "would come from a stranger",
        "uv tool install oku": "would come from a stranger",
        "npm install oku-report": "oku-report would come from a stranger",
        "brew install oku": "would come from a stranger",
    }  # fmt: skip
    for text, fault in cases.items():
        found = list(check(text))
        assert len(found) == 1, (text, found)
        assert fault in found[0]
        assert list(check(f"{text}\n{text}")) == found


def test_names_with_an_owner_and_examples_are_left_alone() -> None:
    """Nobody can register a reserved name, a path or a name of this machine."""
    fine = (
        "http://127.0.0.1:8080/ http://localhost:1/ http://shop.example/ https://registry.example.com/oku",
        "http://oku.invalid http://a.test http://oku-loki:3100 http://x.oku.svc http://SERVICE.NAMESPACE.svc",
        "https://github.com/grafana/k6 me@example.com git@v1 checkout@v6",
        "  - uses: actions/checkout@v6",
        "docker run --rm -v oku:/data localhost/oku/oku:0.1.0 run",
        "docker tag localhost/oku/oku:0.1.0 registry.example.com/oku/oku:0.1.0",
        "image: docker.io/valkey/valkey:9.1.2, FROM python:3.13-slim",
        "pip install dist/*-any.whl; pip install 'locust>=2.47' gevent",
        'pip install "$OKU_WHEEL"',
        "uvx --from dist/*-any.whl oku run http://127.0.0.1/",
        "pip uninstall oku",
        "for pip, pipx and uv",
    )
    assert [fault for text in fine for fault in check(text)] == []
