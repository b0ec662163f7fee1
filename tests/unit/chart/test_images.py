"""The names of images: nobody else can serve what a fresh release pulls."""

from pathlib import Path
from typing import Any

import yaml
from tests.unit.chart.rendering import ROOT, VALUE_FILES, evaluate, find_pods, refuse, render

OWNED = ("localhost/oku/oku:", "docker.io/valkey/valkey:", "docker.io/grafana/loki:",
         "docker.io/grafana/grafana:")  # fmt: skip
"""What default names begin with: a registry that is not reached from elsewhere, or the name of an owner."""
EXAMPLE = "registry.example.com/"
PUBLIC = ("docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com", "ghcr.io",
          "quay.io", "Docker.IO", "gcr.io", "eu.gcr.io", "public.ecr.aws", "registry.gitlab.com")  # fmt: skip


def test_no_image_can_be_served_by_a_stranger() -> None:
    """Each one is named with its registry: a node would look for others at Docker Hub."""
    for files in ((), *((file,) for file in VALUE_FILES)):
        for component, pod in find_pods(render(files=files)).items():
            for container in pod["spec"]["containers"]:
                assert container["image"].startswith((*OWNED, EXAMPLE)), (files, component)
    # No image of the manifests can be served by a stranger.
    manifests = sorted((ROOT / "k8s" / "plain").glob("*/oku.yaml"))
    assert len(manifests) == 2
    for path in manifests:
        pods = find_pods(list(yaml.load_all(path.read_text(), yaml.CSafeLoader)))
        images = {each["image"] for pod in pods.values() for each in pod["spec"]["containers"]}
        assert images
        assert all(image.startswith((*OWNED, EXAMPLE)) for image in images), path


def test_the_default_repository_is_refused_at_public_registries(tmp_path: Path) -> None:
    """A stranger may own the name there; without a registry, Docker Hub is meant."""
    default = {"repository": "oku/oku", "tag": "", "digest": ""}
    images: list[dict[str, str]] = [{**default, "registry": registry} for registry in ("", *PUBLIC)]
    images.append({**default, "registry": "", "digest": "sha256:" + "0a" * 32})
    template = (
        "said:\n{{- range .Values.global.images }}\n"
        '{{- $values := dict "image" . "imageRegistry" "" }}\n'
        '- {{ include "oku.unownedImage" (dict "Values" $values "Chart" $.Chart) | toJson }}\n{{- end }}\n'
    )
    for said in evaluate(template, {"global": {"images": images}}, tmp_path)["said"]:
        assert "would come from a public registry, where this name is not ours: set image.registry" in said
    assert "image: docker.io/oku/oku:0.1.0 would come" in refuse({"imageRegistry": "docker.io"})


def test_a_name_of_ones_own_is_taken_at_any_registry() -> None:
    """So is a mirror within a public registry, which has an owner."""
    wanted: dict[str, dict[str, Any]] = {
        "docker.io/shop/oku:0.1.0": {"image": {"registry": "docker.io", "repository": "shop/oku"}},
        "ghcr.io/shop/oku/oku:0.1.0": {"imageRegistry": "ghcr.io/shop"},
        "registry.example.com/oku/oku:0.1.0": {"image": {"registry": "registry.example.com"}},
        "127.0.0.1:5000/oku/oku:0.1.0": {"image": {"registry": "127.0.0.1:5000"}},
    }
    for image, values in wanted.items():
        assert find_pods(render(values))["coordinator"]["spec"]["containers"][0]["image"] == image


def test_the_notes_say_what_to_set_while_the_image_is_nowhere(tmp_path: Path) -> None:
    """Pods of a fresh cluster wait; the user who installed the release reads why."""
    template = 'notes: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}'
    said = evaluate(template, {}, tmp_path / "default")["notes"]
    assert "Its image is localhost/oku/oku:0.1.0, which no registry serves" in said
    assert "set image.registry to that" in said
    values = {"image": {"registry": "registry.example.com"}}
    assert "no registry serves" not in evaluate(template, values, tmp_path / "set")["notes"]
