"""The coordinator's side of the broker where the broker is away, says little, or is behind TLS."""

import os
import signal
import socket
import ssl
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.exceptions import ConnectionError as ConnectionFailedError
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.link_twin import LinkTwin
from tests.kit.faults.freezing import freeze
from tests.kit.runs.local_run import wait_until
from tests.kit.servers.certificates import Certificates
from tests.kit.servers.front import Front

from oku_coordinator.broker.celery_sender import CelerySender
from oku_core.broker.celery_app import build_app
from oku_core.messaging.order import Control, Stop


def test_sending_an_order_never_blocks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An order may take its time or be lost; a broker that keeps one for seconds is unreachable."""
    with run_broker(tmp_path) as url:
        app = build_app(url, MESSAGE_KEY)
        broker = CelerySender(app, LinkTwin())
        broker.send_intervals(1.0, 3.0)
        broker.send([Control(incarnation="b1", confirmed={"l1": 1})])
        with app.connection_for_write() as connection:
            pid = int(connection.default_channel.client.info("server")["process_id"])
        freeze(pid)
        began = time.monotonic()
        for _ in range(20):
            broker.send([Stop(run="r", up_to=1, grace_s=1.0)])
        assert time.monotonic() - began < 0.5
        assert not broker.is_away
        wait_until(lambda: broker.is_away, 5, "the broker is taken for away")
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: not broker.is_away, 15, "the broker is back")
        assert not caplog.records
    broker.send_intervals(1.0, 3.0)
    wait_until(lambda: bool(caplog.records), 15, "an order is lost")
    assert "the broker did not accept a message to workers: " in caplog.text


def test_nothing_is_sent_to_a_broker_that_is_known_to_be_unreachable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The listener reports the outage; each try would take seconds and be logged."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.3)
        broker = CelerySender(
            build_app(f"redis://127.0.0.1:{listener.getsockname()[1]}", MESSAGE_KEY),
            LinkTwin(is_connected=False),
        )
        assert broker.is_away
        broker.send_intervals(1.0, 3.0)
        assert broker.fetch_peak_mb() is None
        with pytest.raises(TimeoutError):
            listener.accept()
    assert not caplog.records


def test_the_size_of_a_broker_that_forbids_the_command_is_unknown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Many a managed broker forbids the command; that is no reason to fail."""
    with run_broker(tmp_path) as url:
        app = build_app(url, MESSAGE_KEY)
        broker = CelerySender(app, LinkTwin())
        assert (broker.fetch_peak_mb() or 0.0) > 0.1
        with app.connection_for_write() as connection:
            connection.default_channel.client.execute_command("ACL", "SETUSER", "default", "-info")
        assert broker.fetch_peak_mb() is None
    assert "no permissions" in caplog.text


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """The server's is for 127.0.0.1 only."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Certificates(folder)


def test_a_broker_behind_tls_has_to_show_its_certificate(tmp_path: Path, certificates: Certificates) -> None:
    """A known authority must have signed it, for the host of the URL, unless that check is turned off."""
    ca = f"ssl_ca_certs={certificates.cacert}"
    with run_broker(tmp_path) as url, Front(urlsplit(url).path, certificates.server) as front:
        for good in (
            f"rediss://127.0.0.1:{front.port}/0?{ca}",
            f"rediss://127.0.0.2:{front.port}/0?{ca}&ssl_check_hostname=false",
            f"rediss://127.0.0.2:{front.port}/0?ssl_cert_reqs=none",
        ):
            broker = CelerySender(build_app(good, MESSAGE_KEY), LinkTwin())
            assert (broker.fetch_peak_mb() or 0.0) > 0.1
        for bad, reason in (
            (f"rediss://127.0.0.1:{front.port}/0", "unable to get local issuer certificate"),
            (f"rediss://127.0.0.2:{front.port}/0?{ca}", "IP address mismatch"),
        ):
            with pytest.raises(ConnectionFailedError, match=reason):
                connect(bad)


def test_rabbitmq_behind_tls_has_to_show_its_certificate(tmp_path: Path, certificates: Certificates) -> None:
    """The same parameters check an AMQP broker; nothing is behind the handshake here, so it ends there."""
    ca = f"ssl_ca_certs={certificates.cacert}"
    with Front(str(tmp_path / "nothing"), certificates.server) as front:
        for bad, reason in (
            (f"amqps://127.0.0.1:{front.port}//", "unable to get local issuer certificate"),
            (f"amqps://127.0.0.2:{front.port}//?{ca}", "IP address mismatch"),
        ):
            with pytest.raises(ssl.SSLCertVerificationError, match=reason):
                connect(bad)
        assert front.handshakes == 0
        for number, good in enumerate(
            (
                f"amqps://127.0.0.1:{front.port}//?{ca}",
                f"amqps://127.0.0.2:{front.port}//?{ca}&ssl_check_hostname=false",
                f"amqps://127.0.0.2:{front.port}//?ssl_cert_reqs=none",
            ),
            1,
        ):
            with pytest.raises(OSError, match="closed"):
                connect(good)
            assert front.handshakes == number


def connect(url: str) -> None:
    """Connect once."""
    with build_app(url, MESSAGE_KEY).connection_for_write() as connection:
        connection.transport.establish_connection()
