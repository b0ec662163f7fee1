"""Compiles the extension of the httptools engine while Oku is built, if the machine can do that.

With it a wheel is of one platform, and of every Python from 3.11 on (PEP 384). Without a C compiler, or with
`OKU_NO_EXTENSIONS`, the wheel is of all platforms, and Python does the same.
"""

import os
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

ROOM = "workers/src"
FOLDER = "oku_workers/engines/httptools"
NAME = "_speedups"
FILE = f"{ROOM}/{FOLDER}/{NAME}.abi3.so"


class ExtensionHook(BuildHookInterface[BuilderConfig]):
    """Leaves the extension beside its source; a wheel that is not editable has it, too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is packed, whose version is `standard` or `editable`."""
        file = Path(self.root, FILE)
        file.unlink(missing_ok=True)
        # The stable ABI knows no Python without the lock of the interpreter.
        if os.environ.get("OKU_NO_EXTENSIONS") or sysconfig.get_config_var("Py_GIL_DISABLED"):
            return
        compile_extension(Path(self.root))
        if version == "standard" and file.exists():
            platforms = (tag.platform for tag in sys_tags())
            platform = next(each for each in platforms if not each.startswith(("manylinux", "musllinux")))
            build_data["artifacts"].append(FILE)
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{platform}"


def compile_extension(root: Path) -> None:
    """Compile it; without a compiler nothing but a line of setuptools comes of that."""
    extension = Extension(
        f"{FOLDER.replace('/', '.')}.{NAME}",
        [str(root / ROOM / FOLDER / f"{NAME}.c")],
        extra_compile_args=["-g0"],  # what is told to debuggers has the names of folders in it
        py_limited_api=True,
        optional=True,
    )
    command = build_ext(Distribution({"ext_modules": [extension]}))
    with tempfile.TemporaryDirectory() as folder:
        command.build_lib, command.build_temp = str(root / ROOM), folder
        command.ensure_finalized()
        command.run()
