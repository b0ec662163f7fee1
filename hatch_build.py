"""Compiles the extension of the workers while Oku is built, if the machine can do that.

With it a wheel is of one platform, and of every Python from 3.11 on (PEP 384). Without a C compiler, or with
`OKU_NO_EXTENSIONS`, the wheel is of all platforms, and Python does the same.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilderConfig
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

SOURCES = Path("workers/src")
FOLDER = Path("oku_workers/speedups")
FILE = FOLDER / "_speedups.abi3.so"


class ExtensionHook(BuildHookInterface[WheelBuilderConfig]):
    """Has the extension packed into a wheel; for an editable one, leaves it beside its source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is packed, whose version is `standard` or `editable`."""
        sources = Path(self.root) / SOURCES
        # Beside its place in the sources it can be moved there in one step.
        beside = sources if version == "editable" else None
        self._folder = Path(tempfile.mkdtemp(prefix=".compiled-", dir=beside))
        extension = compile_extension(sources, self._folder) if may_compile() else None
        if version == "editable":
            if extension is None:
                (sources / FILE).unlink(missing_ok=True)
            else:
                extension.replace(sources / FILE)
        elif extension is not None:
            platform = self.build_config.builder.get_best_matching_tag().rpartition("-")[2]
            build_data["force_include"][str(extension)] = str(FILE)
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{platform}"

    def finalize(self, *_: Any) -> None:
        """Called when the wheel is packed."""
        shutil.rmtree(self._folder)


class BuildExtension(build_ext):
    """Builds extensions that do not look for libraries where those of this machine's Python are."""

    def build_extensions(self) -> None:
        """Called when the compiler is known."""
        linker = self.compiler.linker_so
        self.compiler.linker_so = [flag for flag in linker if not flag.startswith("-Wl,-rpath")]
        super().build_extensions()


def may_compile() -> bool:
    """Whether it is wanted, and this Python has the stable ABI, which needs the GIL."""
    is_wanted = not os.environ.get("OKU_NO_EXTENSIONS")
    has_gil = not sysconfig.get_config_var("Py_GIL_DISABLED")
    return is_wanted and has_gil and sys.implementation.name == "cpython"


def compile_extension(sources: Path, folder: Path) -> Path | None:
    """Compile it into a folder; None, and a line of setuptools, if that cannot be done."""
    extension = Extension(
        ".".join((*FOLDER.parts, "_speedups")),
        sorted(map(str, (sources / FOLDER).glob("*.c"))),
        extra_compile_args=["-g0"],  # what is told to debuggers has the names of folders in it
        py_limited_api=True,
        optional=True,
    )
    command = BuildExtension(Distribution({"ext_modules": [extension]}))
    command.build_lib, command.build_temp = str(folder), str(folder / "objects")
    command.ensure_finalized()
    command.run()
    return folder / FILE if (folder / FILE).exists() else None
