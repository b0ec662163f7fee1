import asyncio
from typing import Any

import pytest
from tests.kit.coordinators.counting_signals import CountingSignals
from tests.kit.coordinators.leases import deal_lease
from tests.kit.coordinators.transactions import change
from tests.unit.coordinator.kube.twin import Kubernetes, refuse

from oku_coordinator.kube import scaler as scaler_module
from oku_coordinator.kube.cluster import Cluster, ClusterError
from oku_coordinator.kube.dns import NAMED_WITHIN_S, PodServers, ServerDns, format_url
from oku_coordinator.kube.pods import COST_ANNOTATION, SERVERS_WITHIN_S, PodReadiness, find_cost_changes
from oku_coordinator.kube.scaler import Scaler
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.servers.served_count import Address, NotFoundError
from oku_coordinator.settings import KubeSettings
from oku_core.accounting.run_state import RunState
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url

IDLE_S = 60.0
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "message": "no node has room. More words."}
SETTINGS = KubeSettings(
    namespace="oku", workers="w", servers="s", max_workers=8, max_servers=4, idle_s=IDLE_S
)


class World:
    """A scaler at a time that is set by hand."""

    def __init__(self, ledger: Ledger, cluster: Cluster, settings: KubeSettings = SETTINGS) -> None:
        self.ledger = ledger
        self.cluster = cluster
        self.settings = settings
        self.now = 1000.0
        self.signals = CountingSignals()
        self.named: set[str] | None = None
        """What the name of the delay servers stands for; None for those that there are."""
        self.name: ServerDns | None = ServerDns("oku-servers", self._look_up, lambda: self.now, self._sleep)
        self.scaler = self.build_scaler()

    def build_scaler(self) -> Scaler:
        """A scaler as a coordinator has it that has just started."""
        return Scaler(self.settings, self.cluster, self.ledger, self.signals, self.name, lambda: self.now)

    def submit(self, run: str = "r1", **spec: Any) -> RunRecord:
        """A run that waits for its turn; its target is somebody else's."""
        return change(
            self.ledger, create_run, run, Spec(requests=10, **{"urls": (Url("http://h/"),)} | spec), self.now
        )

    def change(self, state: RunState, run: str = "r1") -> RunRecord:
        """Put it into a state."""
        return change(self.ledger, change_state, run, state, self.now)

    async def look(self, after_s: float = 2.0) -> None:
        """A look, some time later."""
        self.now += after_s
        await self.scaler.scale()

    async def _sleep(self, duration_s: float) -> None:
        self.now += duration_s

    async def _look_up(self, host: str) -> set[str]:
        assert host == "oku-servers"
        return {"127.0.0.1"} if self.named is None else self.named


@pytest.fixture
def world(ledger: Ledger, cluster: Cluster) -> World:
    """Bounds of 8 workers and 4 delay servers."""
    return World(ledger, cluster)


async def test_workers_are_there_for_a_run_and_go_after_it(world: World, kubernetes: Kubernetes) -> None:
    """There are 0, then 4, and 0 again after the idle time."""
    world.submit(workers=4)
    await world.look()
    assert kubernetes.replicas == {"w": 4, "s": 0}
    world.change(RunState.RUNNING)
    await world.look()
    world.change(RunState.CANCELLING)
    await world.look()
    await world.look(IDLE_S - 1)
    assert kubernetes.replicas["w"] == 4
    await world.look()
    assert kubernetes.replicas["w"] == 0


async def test_whoever_scales_by_hand_during_a_run_is_not_fought(
    world: World, kubernetes: Kubernetes
) -> None:
    """A size that was set by hand stays until the run is over, even if the coordinator restarts.

    The run has as many workers as that.
    """
    run = world.submit(workers=4)
    assert world.scaler.find_size(run) is None
    await world.look()
    assert world.scaler.find_size(run) == 4
    world.change(RunState.RUNNING)
    for replicas in (8, 2):
        kubernetes.replicas["w"] = replicas
        await world.look(10.0)
        assert kubernetes.replicas["w"] == replicas
        assert world.scaler.find_size(run) == replicas
    world.scaler = world.build_scaler()
    await world.look()
    assert kubernetes.replicas["w"] == 2
    assert len(kubernetes.patches) == 1


async def test_a_run_that_is_found_without_any_worker_gets_its_own(
    world: World, kubernetes: Kubernetes
) -> None:
    """Its workers may have gone while there was no coordinator; without new ones it would wait for ever."""
    world.submit(workers=4)
    world.change(RunState.RUNNING)
    await world.look()
    assert kubernetes.replicas["w"] == 4


async def test_what_was_scaled_by_hand_without_a_run_stays(world: World, kubernetes: Kubernetes) -> None:
    """Rest is a transition, too: it comes once."""
    await world.look()
    await world.look(IDLE_S)
    kubernetes.replicas["w"] = 3
    await world.look(IDLE_S)
    assert kubernetes.replicas["w"] == 3


async def test_the_next_run_in_the_queue_is_scaled_for_when_its_turn_comes(
    world: World, kubernetes: Kubernetes
) -> None:
    """It does not happen before."""
    world.submit("r1", workers=4)
    world.change(RunState.RUNNING, "r1")
    world.submit("r2", workers=2)
    await world.look()
    assert kubernetes.replicas["w"] == 4
    world.change(RunState.CANCELLING, "r1")
    await world.look()
    assert kubernetes.replicas["w"] == 2


async def test_a_run_waits_for_its_delay_servers(world: World, kubernetes: Kubernetes) -> None:
    """It begins when as many are ready as it wants, and the coordinator is woken."""
    run = world.submit(urls=(), servers=2)
    await world.look()
    assert kubernetes.replicas["s"] == 2
    assert not world.scaler.has_servers(run)
    kubernetes.add_pod("s", "s-1")
    kubernetes.add_pod("s", "s-2", ready=False)
    await world.look()
    assert not world.scaler.has_servers(run)
    kubernetes.pods["s"].pop()
    kubernetes.add_pod("s", "s-3")
    await world.look()
    assert world.scaler.has_servers(run)
    assert world.signals.wakes == 1


async def test_a_run_that_wants_fewer_delay_servers_waits_for_the_others_to_go(
    world: World, kubernetes: Kubernetes
) -> None:
    """They are ready when the Deployment has just been made smaller, and end a second later."""
    kubernetes.replicas["s"] = 3
    for name in ("s-1", "s-2", "s-3"):
        kubernetes.add_pod("s", name)
    run = world.submit(urls=(), servers=1)
    await world.look()
    assert kubernetes.replicas["s"] == 1
    assert not world.scaler.has_servers(run)
    for pod in kubernetes.pods["s"][1:]:
        pod["metadata"]["deletionTimestamp"] = "2026-02-01T17:05:12Z"
    await world.look()
    assert not world.scaler.has_servers(run)
    assert world.scaler.servers == PodReadiness(1, 1, surplus=2)
    del kubernetes.pods["s"][1:]
    await world.look()
    assert world.scaler.has_servers(run)


async def test_a_run_begins_when_the_name_of_its_delay_servers_stands_for_them(
    world: World, kubernetes: Kubernetes
) -> None:
    """Until then a notice tells what DNS says."""
    run = world.submit(urls=(), servers=2)
    await world.look()
    for number in (1, 2):
        kubernetes.add_pod("s", f"s-{number}", podIP=f"10.0.0.{number}")
    world.named = {"10.0.0.9"}
    await world.look()
    assert not world.scaler.has_servers(run)
    assert world.scaler.servers == PodReadiness(2, 2, "DNS still resolves oku-servers to 10.0.0.9")
    world.named = {"10.0.0.1", "10.0.0.2"}
    await world.look()
    assert world.scaler.has_servers(run)
    assert world.scaler.servers == PodReadiness(2, 2)
    assert world.signals.wakes == 1


async def test_a_name_is_not_asked_for_before_the_delay_servers_are_ready(
    world: World, kubernetes: Kubernetes
) -> None:
    """It has a minute from then on, however long they took."""
    run = world.submit(urls=(), servers=1)
    world.named = {"10.96.0.7"}
    await world.look()
    await world.look(SERVERS_WITHIN_S)
    kubernetes.add_pod("s", "s-1")
    await world.look()
    await world.look(NAMED_WITHIN_S - 1)
    assert not world.scaler.has_servers(run)
    await world.look()
    assert world.scaler.has_servers(run)


async def test_delay_servers_that_go_while_a_run_waits_for_workers_are_waited_for_again(
    world: World, kubernetes: Kubernetes
) -> None:
    """A node for the workers may take minutes to come."""
    run = world.submit(urls=(), servers=1)
    kubernetes.add_pod("s", "s-1")
    await world.look()
    assert world.scaler.has_servers(run)
    await world.look()
    assert world.signals.wakes == 1
    gone = kubernetes.pods["s"].pop()
    await world.look()
    assert not world.scaler.has_servers(run)
    kubernetes.pods["s"].append(gone)
    await world.look()
    assert world.scaler.has_servers(run)


async def test_delay_servers_of_a_run_that_paused_are_waited_for_again(
    world: World, kubernetes: Kubernetes
) -> None:
    """Another had its turn meanwhile, with servers of its own."""
    run = world.submit("r1", urls=(), servers=1)
    kubernetes.add_pod("s", "s-1")
    await world.look()
    world.change(RunState.RUNNING, "r1")
    await world.look()
    world.change(RunState.PAUSED, "r1")
    world.submit("r2")
    world.change(RunState.RUNNING, "r2")
    await world.look()
    world.change(RunState.PENDING, "r1")
    world.change(RunState.CANCELLING, "r2")
    kubernetes.pods["s"].clear()
    await world.look()
    assert not world.scaler.has_servers(run)


async def test_a_run_that_is_found_active_is_not_held_up_by_its_delay_servers(
    world: World, kubernetes: Kubernetes
) -> None:
    """It has begun before."""
    world.submit(urls=(), servers=1)
    world.named = set()
    run = world.change(RunState.RUNNING)
    await world.look()
    assert world.scaler.has_servers(run)
    assert not kubernetes.pods["s"]


async def test_delay_servers_without_a_name_of_their_own_are_enough_when_they_are_ready(
    world: World, kubernetes: Kubernetes
) -> None:
    """Nobody knows what an address, or each of several names, stands for."""
    world.name, world.named = None, set()
    world.scaler = world.build_scaler()
    run = world.submit(urls=(), servers=1)
    kubernetes.add_pod("s", "s-1")
    await world.look()
    assert world.scaler.has_servers(run)


async def test_a_full_cluster_does_not_hold_a_run_up_for_ever(world: World, kubernetes: Kubernetes) -> None:
    """It begins with the delay servers that there are."""
    run = world.submit(urls=(), servers=2)
    await world.look()
    kubernetes.add_pod("s", "s-1")
    await world.look(SERVERS_WITHIN_S)
    assert world.scaler.has_servers(run)


async def test_delay_servers_go_back_to_what_there_is_at_rest(ledger: Ledger, cluster: Cluster) -> None:
    """It never scales to more than there are."""
    settings = KubeSettings(namespace="oku", workers="w", servers="s", min_servers=1, idle_s=IDLE_S)
    world = World(ledger, cluster, settings)
    for before, after in ((3, 1), (0, 0)):
        await cluster.scale("s", before)
        world.scaler = world.build_scaler()
        await world.look()
        await world.look(IDLE_S)
        assert (await cluster.fetch_scale("s")).replicas == after


async def test_where_no_delay_servers_are_named_none_are_touched(
    ledger: Ledger, cluster: Cluster, kubernetes: Kubernetes
) -> None:
    """They may be somebody else's."""
    world = World(ledger, cluster, KubeSettings(namespace="oku", workers="w", idle_s=IDLE_S))
    run = world.submit(urls=())
    await world.look()
    assert world.scaler.has_servers(run)
    world.change(RunState.CANCELLED)
    await world.look()
    await world.look(IDLE_S)
    assert [name for name, _ in kubernetes.patches] == ["scale", "scale"]
    assert kubernetes.replicas == {"w": 0, "s": 0}


async def test_what_the_api_refuses_is_told_once_and_tried_again(
    world: World, kubernetes: Kubernetes, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried until it succeeds, and the success is logged as well."""
    caplog.set_level("INFO")
    world.submit(workers=4)
    kubernetes.failures = [refuse(403, "no rights"), refuse(403, "no rights"), refuse(500, "etcd")]
    for _ in range(3):
        await world.look()
        assert kubernetes.replicas["w"] == 0
    assert "etcd" in world.scaler.trouble
    await world.look()
    assert kubernetes.replicas["w"] == 4
    assert world.scaler.trouble == ""
    told = [record.message for record in caplog.records if "Kubernetes" in record.message]
    assert ["403" in told[0], "500" in told[1], told[2]] == [True, True, "Kubernetes answers again"]
    assert len(told) == 3


async def test_a_size_that_could_not_be_set_is_not_taken_for_set(
    world: World, kubernetes: Kubernetes
) -> None:
    """Neither is rest."""
    await world.look()
    kubernetes.replicas["w"] = 3
    kubernetes.failures = [refuse(409, "conflict")]
    await world.look(IDLE_S)
    assert kubernetes.replicas["w"] == 3
    await world.look()
    assert kubernetes.replicas["w"] == 0


async def test_pods_of_busy_workers_say_so(
    world: World, kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that has gone meanwhile holds nobody up."""
    make_two_of_three_busy(world, kubernetes)
    monkeypatch.setattr(
        scaler_module, "find_cost_changes", lambda pods, held: {"gone": 100} | find_cost_changes(pods, held)
    )
    await world.look()
    assert list_costs(kubernetes) == ["100", None, "100"]
    assert world.scaler.trouble == ""


async def test_a_cost_that_is_refused_is_told_once_and_keeps_no_other_pod_from_its_own(
    world: World, kubernetes: Kubernetes, caplog: pytest.LogCaptureFixture
) -> None:
    """It stays known between the looks at which costs are set, and is tried again at the next one of them."""
    caplog.set_level("INFO")
    make_two_of_three_busy(world, kubernetes)
    kubernetes.refusals = {"w-1": 403}
    for _ in range(8):
        await world.look()
        assert "not allowed" in world.scaler.trouble
    assert list_costs(kubernetes) == [None, None, "100"]
    kubernetes.refusals = {}
    for _ in range(5):
        await world.look()
    assert list_costs(kubernetes) == ["100", None, "100"]
    assert world.scaler.trouble == ""
    assert len([record for record in caplog.records if "Kubernetes" in record.message]) == 2


async def test_an_api_that_does_not_answer_is_not_asked_for_each_pod(
    world: World, kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call may take seconds."""
    make_two_of_three_busy(world, kubernetes)
    asked = []

    async def fail(pod: str, cost: int) -> None:
        asked.append((pod, cost))
        raise ClusterError("PATCH: TimeoutError")

    monkeypatch.setattr(world.cluster, "set_cost", fail)
    await world.look()
    assert asked == [("w-1", 100)]
    assert world.scaler.trouble == "PATCH: TimeoutError"


def make_two_of_three_busy(world: World, kubernetes: Kubernetes) -> None:
    """The first and the last of three workers have a lease of a run."""
    for name in ("w-1", "w-2", "w-3"):
        kubernetes.add_pod("w", name)
    world.submit(workers=3)
    world.change(RunState.RUNNING)
    for worker in ("w-1", "w-3"):
        deal_lease(world.ledger, "r1", 2, world.now, worker=worker)


def list_costs(kubernetes: Kubernetes) -> list[str | None]:
    """What the pods of workers say."""
    return [pod["metadata"].get("annotations", {}).get(COST_ANNOTATION) for pod in kubernetes.pods["w"]]


async def test_costs_are_not_set_at_every_look(world: World, kubernetes: Kubernetes) -> None:
    """Kubernetes asks not to change them often."""
    kubernetes.add_pod("w", "w-1")
    world.submit(workers=1)
    world.change(RunState.RUNNING)
    await world.look()
    calls = kubernetes.calls
    await world.look()
    assert kubernetes.calls == calls
    await world.look(10.0)
    assert kubernetes.calls == calls + 2


async def test_it_is_known_how_many_workers_are_there_and_why_not_all(
    world: World, kubernetes: Kubernetes
) -> None:
    """They are counted as long as some are missing, also while the run is running; none is wanted at rest."""
    world.submit(workers=2)
    kubernetes.add_pod("w", "w-1")
    kubernetes.add_pod("w", "w-2", phase="Pending", conditions=[UNSCHEDULED])
    await world.look()
    assert world.scaler.workers == PodReadiness(1, 2, "no node has room")
    world.change(RunState.RUNNING)
    kubernetes.pods["w"].pop()
    await world.look()
    assert world.scaler.workers == PodReadiness(1, 2)
    kubernetes.add_pod("w", "w-3")
    await world.look()
    assert world.scaler.workers == PodReadiness(2, 2)
    world.change(RunState.CANCELLING)
    await world.look()
    assert world.scaler.workers == PodReadiness()


async def test_pods_that_cannot_be_made_are_not_a_riddle(world: World, kubernetes: Kubernetes) -> None:
    """A quota refuses them, so that none is there that could say why."""
    world.submit(workers=2, urls=(), servers=1)
    kubernetes.conditions = [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]
    await world.look()
    assert world.scaler.workers == PodReadiness(0, 2, "exceeded quota")
    assert world.scaler.servers == PodReadiness(0, 1, "exceeded quota")


async def test_the_task_goes_on_after_what_nobody_foresaw(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged; runs depend on it."""
    looks: asyncio.Queue[None] = asyncio.Queue()

    async def look() -> None:
        looks.put_nowait(None)
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(scaler_module, "POLL_S", 0.0)
    monkeypatch.setattr(world.scaler, "scale", look)
    world.scaler.start(Supervisor(sleep=lambda _: asyncio.sleep(0)))
    for _ in range(3):
        await looks.get()
    await world.scaler.end()
    assert "scaler: RuntimeError: unforeseen" in caplog.text


async def test_delay_servers_are_found_by_their_pods(cluster: Cluster, kubernetes: Kubernetes) -> None:
    """Those that are terminating or not ready are included: they may have counted."""
    kubernetes.add_pod("s", "s-1", podIP="10.0.0.1")
    kubernetes.add_pod("s", "s-2", podIP="fd00::2", ready=False)
    kubernetes.add_pod("s", "s-3", podIP="", phase="Pending")
    servers = PodServers(cluster, "s", "http://oku-server:8080/")
    assert not servers.is_fixed
    assert await servers.find() == [
        Address("http://10.0.0.1:8080", "oku-server:8080"),
        Address("http://[fd00::2]:8080", "oku-server:8080"),
    ]
    kubernetes.failures = [refuse(403, "no rights")]
    with pytest.raises(NotFoundError, match="no rights"):
        await servers.find()


async def test_a_service_without_a_port_has_the_usual_one(cluster: Cluster, kubernetes: Kubernetes) -> None:
    """It is 80, as in any URL."""
    kubernetes.add_pod("s", "s-1", podIP="10.0.0.1")
    assert await PodServers(cluster, "s", "http://oku-server").find() == [
        Address("http://10.0.0.1:80", "oku-server")
    ]
    assert format_url("10.0.0.1", 80) == "http://10.0.0.1:80"
