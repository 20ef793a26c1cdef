"""Which CUDA the installed driver knows, and the packages that fit it."""

from __future__ import annotations

import ctypes
import sys

from optiml_magic.errors import MachineError


def driver_release() -> int:
    """The major version of CUDA that the driver knows; 0 where there is no driver.

    Makes no context. Source: CUDA Driver API, "cuDriverGetVersion".
    """
    version = ctypes.c_int(0)
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        status = library.cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return 0 if status else version.value // 1000


def require_release(compiler: str, major: int, release: int) -> None:
    """MachineError where a driver of CUDA ``release`` is too old for a compiler of ``major``.

    A driver runs cubins of its own release and of earlier ones; 0 stands for no driver.
    """
    if 0 < release < major:
        raise MachineError(
            f"{compiler} makes cubins of CUDA {major}, and the driver supports CUDA {release}",
            fix=advice(release),
        )


def advice(release: int) -> str:
    """What to install for a driver of this CUDA release."""
    if 0 < release < 12:
        return "install a driver for CUDA 12 or later"
    return f'pip install "optiml-magic[gpu{12 if release == 12 else 13}]"'
