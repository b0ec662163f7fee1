"""TLS for servers in tests: certificates of an authority that nobody else knows."""

import ssl
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)


def build_server_tls(authority: trustme.CA, *names: str, clients: trustme.CA | None = None) -> ssl.SSLContext:
    """TLS of a server that goes by some names, and asks for certificates of an authority if one is given."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    if clients is not None:
        clients.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class Certificates:
    """Files of an authority, of a client and of what is neither, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.server = build_server_tls(self.authority, "127.0.0.1")
        self.folder = folder
        self._client = self.authority.issue_cert("client.example")
        self.cacert = self._write("ca.pem", self.authority.cert_pem.bytes())
        self.cert = self._write("client.pem", self._client.cert_chain_pems[0].bytes())
        self.key = self._write("client.key", self._client.private_key_pem.bytes())
        self.both = self._write("both.pem", self._client.private_key_and_cert_chain_pem.bytes())
        self.other_key = self._write(
            "other.key", self.authority.issue_cert("other.example").private_key_pem.bytes()
        )
        self.nonsense = self._write("nonsense.pem", b"no certificate\n")
        self.missing = str(folder / "missing.pem")

    def lock_key(self) -> str:
        """The key of the client, behind a passphrase."""
        key = load_pem_private_key(self._client.private_key_pem.bytes(), None)
        locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
        return self._write("locked.key", locked)

    def _write(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.write_bytes(content)
        return str(path)
