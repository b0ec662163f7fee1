"""How programs are started so that nothing comes from the folder in which `oku` was called.

That folder may be anybody's: a module `json.py` in it, or a `valkey-server`, must not become part of a run.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

PYTHON = (sys.executable, "-P")
"""Python that does not look for modules in its working directory."""
_OWN = ("OKU_", "CELERY_")
"""What is set for an `oku coordinator`, an `oku worker` or a Celery of one's own."""
_OTHERS = ("DJANGO_SETTINGS_MODULE",)
"""With it Celery takes the working directory for a Django project, and imports from there."""
_SEARCH_PATHS = ("PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""An entry that is empty, as in `PYTHONPATH=:/x`, means the working directory."""
_FILES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF")


def build_environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child that works in another folder, made of that of this process."""
    environment = {
        name: value for name, value in given.items() if not name.startswith(_OWN) and name not in _OTHERS
    }
    for name in _SEARCH_PATHS:
        if (value := environment.pop(name, None)) and (kept := _keep_absolute(value)):
            environment[name] = kept
    return environment | {name: str(Path(given[name]).absolute()) for name in _FILES if given.get(name)}


def find_program(name: str) -> str | None:
    """Where a program is on the PATH; entries that are relative to the working directory do not count."""
    return shutil.which(name, path=_keep_absolute(os.environ.get("PATH", os.defpath)))


def _keep_absolute(search_path: str) -> str:
    return os.pathsep.join(entry for entry in search_path.split(os.pathsep) if Path(entry).is_absolute())
