"""Confines a host to its files, as the first message of its worker says, before it loads user code.

It keeps its folder, the files of its run, Python, the programs and libraries of the system, and what these
need to resolve names, check certificates and tell the time. No rule allows the folders of other runs, the
home folder, or anything of another process.
"""

import os
import site
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from oku_core.process.landlock import ALL_RIGHTS, READ_AND_EXECUTE, FileRight, restrict
from oku_core.process.redaction import hide
from oku_core.spec.spec import Spec, decode_spec
from oku_core.spec.values.file_reference import find_file_reference
from oku_core.user_code.messages import Call, FrameReader, Refused, Start, ToHost, frame

_CHUNK_BYTES = 1 << 16
TEMPORARY = ".tmp"
"""Its folder for temporary files, which also is its home: in the folder of user code, and removed with it."""
CONFINED_NOTE = (
    "User code is confined to its own files and processes: it reads those that the run brings, and writes"
    " to its folder or to that of temporary files."
)
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_INSTALLED = ("bin", "include", "lib", "lib64", "share", "pyvenv.cfg")
"""What an installation of Python consists of. Some install it in the folder of a project, which has more."""
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
    "/etc/services", "/etc/protocols", "/etc/localtime", "/etc/timezone", "/etc/mime.types",
    # Beside these there may be private keys.
    "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates", "/etc/crypto-policies",
)  # fmt: skip
_KERNEL = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108  # where locks of multiprocessing are
_USE_DEVICE = FileRight.READ_FILE | FileRight.WRITE_FILE | FileRight.IOCTL_DEV
_USE_SHARED_MEMORY = (
    FileRight.READ_FILE
    | FileRight.WRITE_FILE
    | FileRight.TRUNCATE
    | FileRight.MAKE_REG
    | FileRight.REMOVE_FILE
)
"""It cannot be listed: what others have there is found only by its name."""

_confined: set[int] = set()
"""The process that is confined; those that it starts are, too."""


def prepare_host(connection: socket.socket) -> Start | Call | None:
    """Confine this host as its first message says, and return that message.

    If that fails, it tells the worker and returns None.

    Raises:
        EOFError: the worker has gone.
    """
    message = read_first_message(connection)
    try:
        if message.is_confined:
            confine_files(message)
    except OSError as error:
        reason = f"user code cannot be confined here: {error.strerror or error}"
        connection.sendall(frame(Refused(reason)))
        return None
    return message


def read_first_message(connection: socket.socket) -> Start | Call:
    """What this host is for; `EOFError` if the worker has gone."""
    reader = FrameReader(ToHost)
    while True:
        data = connection.recv(_CHUNK_BYTES)
        if not data:
            raise EOFError("the worker has gone")
        for message in reader.feed(data):
            if isinstance(message, (Start, Call)):
                hide(*message.secrets)
                return message
            raise ValueError(f"the first message is {type(message).__name__}")


def confine_files(message: Start | Call) -> None:
    """Give up all files that the user code of a run does not need.

    Raises:
        OSError: the kernel has no Landlock, or refuses.
    """
    folder = Path(os.fsdecode(message.folder))
    _settle(folder / TEMPORARY)
    restrict(choose_rights(message, folder, decode_spec(message.spec)))
    _confined.add(os.getpid())


def choose_rights(message: Start | Call, folder: Path, spec: Spec) -> dict[Path, FileRight]:
    """What the user code of a run may do with which files.

    Args:
        message: says where the files of the run are.
        folder: where its user code is.
        spec: its spec.
    """
    readable = [*_list_python(), *_list_system(), *_list_files(message, spec), *map(Path, _KERNEL)]
    rights = dict.fromkeys(readable, READ_AND_EXECUTE)
    rights |= dict.fromkeys(map(Path, _DEVICES), _USE_DEVICE)
    rights |= {Path(_SHARED_MEMORY): _USE_SHARED_MEMORY, folder: ALL_RIGHTS}
    # It says how long the only thread of this process has waited for a processor (`measure_busy_s`).
    rights[Path(f"/proc/self/task/{os.getpid()}/schedstat")] = FileRight.READ_FILE
    return rights


def is_refusal(error: BaseException) -> bool:
    """Whether an exception may be due to confinement."""
    return bool(_confined) and isinstance(error, PermissionError)


def _settle(temporary: Path) -> None:
    """Make a folder the home and the place of temporary files."""
    temporary.mkdir(mode=0o700, exist_ok=True)
    if site.ENABLE_USER_SITE and (base := site.getuserbase()):
        os.environ.setdefault("PYTHONUSERBASE", base)  # packages at home are found as before
    os.environ |= {"TMPDIR": str(temporary), "HOME": str(temporary)}


def _list_python() -> Iterator[Path]:
    for prefix in {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}:
        yield from (Path(prefix, name) for name in _INSTALLED)
    yield from (Path(each) for each in sys.path if Path(each).is_absolute())


def _list_system() -> Iterator[Path]:
    yield from map(Path, _SYSTEM)
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    named = [os.environ.get(name, "") for name in _CERTIFICATES]
    yield from (Path(each) for each in (*folders, *named) if Path(each).is_absolute())


def _list_files(message: Start | Call, spec: Spec) -> Iterator[Path]:
    """The files of the run, and those that its spec names here: its worker has read them before."""
    yield from (Path(os.fsdecode(path)) for path in message.paths.values())
    for path in (spec.cacert, spec.cert, spec.key):
        if path is not None and find_file_reference(path) is None and Path(path).is_file():
            yield Path(path)
