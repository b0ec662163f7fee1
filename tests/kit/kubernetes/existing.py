"""What users have before they install Oku, in a namespace of theirs: a Valkey, a RabbitMQ, a Loki.

None of it is the chart's. Nothing is kept when a pod of these goes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from tests.kit.kubernetes.cluster import Cluster, Object, build_container
from tests.kit.loki.loki import build_config

RABBITMQ_IMAGE = "docker.io/library/rabbitmq:3.10"
"""Built of tests/cluster/rabbitmq where it cannot be pulled."""
_CHART_VALUES = Path(__file__).parents[3] / "charts" / "oku" / "values.yaml"
PASSWORD = "theirs-1.~_"
"""Letters of all kinds that may stand in a URL as they are."""
_READY_S = 240
_LOKI_PORT = 3100


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of them.

    Attributes:
        name: of all its objects.
        image: of its container.
        port: at which it listens.
        url: of it, with `{host}` for the host and the port.
        command: of its container; that of the image unless given.
        folder: where its files are.
        files: their texts by name.
        writable: folders that it writes to.
        env: its variables.
    """

    name: str
    image: str
    port: int
    url: str
    folder: str
    files: Mapping[str, str]
    writable: Sequence[str]
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def install(self, cluster: Cluster, namespace: str) -> str:
        """Make it, and wait until it is ready; its URL for pods of any namespace."""
        metadata = {"name": self.name, "namespace": namespace}
        labels = {"app": self.name}
        ports = [{"port": self.port}]
        for document in (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(self.files)},
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                "spec": {"selector": labels, "ports": ports},
            },
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": metadata,
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": self._build_pod()},
                },
            },
        ):
            cluster.apply(document)
        where = ("-n", namespace, f"--timeout={_READY_S}s")
        cluster.call("rollout", "status", f"deployment/{self.name}", *where)
        return self.url.format(host=f"{self.name}.{namespace}.svc:{self.port}")

    def replace(self, cluster: Cluster, namespace: str) -> None:
        """Delete its pod with all that it kept, and wait until another is ready."""
        cluster.replace_pod(namespace, f"app={self.name}")

    def _build_pod(self) -> Object:
        container = build_container(self.name, self.command, user=999, image=self.image)
        container["env"] = [{"name": name, "value": value} for name, value in self.env.items()]
        container["resources"] = {"requests": {"cpu": "100m", "memory": "128Mi"}}
        container["readinessProbe"] = {"tcpSocket": {"port": self.port}, "periodSeconds": 1}
        container["volumeMounts"] = [
            {"name": "files", "mountPath": self.folder},
            *({"name": f"folder-{n}", "mountPath": path} for n, path in enumerate(self.writable)),
        ]
        return {
            "automountServiceAccountToken": False,
            # They would bring variables such as `RABBITMQ_PORT`.
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            "volumes": [
                {"name": "files", "configMap": {"name": self.name}},
                *({"name": f"folder-{n}", "emptyDir": {}} for n, _ in enumerate(self.writable)),
            ],
        }


def build_valkey() -> Part:
    """A Valkey with a password; its URL is that of the fourth database."""
    return Part(
        name="valkey",
        image=_find_image("valkey"),
        port=6379,
        url=f"redis://:{PASSWORD}@{{host}}/3",
        command=("valkey-server", "/etc/valkey/valkey.conf"),
        folder="/etc/valkey",
        files={"valkey.conf": f'requirepass "{PASSWORD}"\nsave ""\ndir /data\n'},
        writable=("/data",),
    )


def build_rabbitmq() -> Part:
    """A RabbitMQ with a user and a virtual host."""
    conf = {
        "listeners.tcp.default": 5672,
        "default_user": "oku",
        "default_pass": PASSWORD,
        "default_vhost": "load",
        "loopback_users": "none",
        "log.console": "true",
        "log.file": "false",
    }
    return Part(
        name="rabbitmq",
        image=RABBITMQ_IMAGE,
        port=5672,
        url=f"amqp://oku:{PASSWORD}@{{host}}/load",
        folder="/etc/rabbitmq",
        files={"rabbitmq.conf": "".join(f"{key} = {value}\n" for key, value in conf.items())},
        writable=("/var/lib/rabbitmq", "/var/log/rabbitmq", "/tmp"),
        env={"HOME": "/var/lib/rabbitmq", "RABBITMQ_NODENAME": "rabbit@localhost"},
    )


def build_loki() -> Part:
    """A Loki that wants to be told of which tenant a call is."""
    config = build_config(Path("/data"), "", _LOKI_PORT, grpc_port=9095, multi_tenant=True)
    return Part(
        name="loki",
        image=_find_image("loki"),
        port=_LOKI_PORT,
        url="http://{host}",
        command=("loki", "-config.file=/etc/loki/loki.yaml"),
        folder="/etc/loki",
        files={"loki.yaml": yaml.safe_dump(config)},
        writable=("/data",),
    )


def _find_image(component: str) -> str:
    image = yaml.safe_load(_CHART_VALUES.read_text())[component]["image"]
    return f"{image['registry']}/{image['repository']}:{image['tag']}"
