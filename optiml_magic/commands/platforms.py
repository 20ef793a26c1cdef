"""What an operating system lacks, as data: the doctor can be asked about one that it is not on.

Source: the wheels that NVIDIA publishes for its compilers, and docs/security.md for the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.commands.parsers import line_parser
from optiml_magic.settings import CHOICES

DEFAULT = CHOICES["compiler"][0]
COMPILING = (
    "optimize",
    "synthesize",
    "check",
    "profile",
    "annotate",
    "run",
    "demo",
    "bench",
    "resume",
)
"""The commands that compile a kernel."""
_REMOTE = "use Linux: a container, WSL, or a remote kernel in JupyterLab"
_INSTALL = (
    "pip install cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt, "
    "or with nvcc of a toolkit on the PATH pass --compiler nvcc"
)


@dataclass(frozen=True)
class Fact:
    """One line of the doctor's: whether it is well, what was found, what to do."""

    well: bool
    what: str
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Platform:
    """``lacks`` is what a user of it does without; a remedy is for where nothing compiles."""

    title: str
    machines: tuple[str, ...]  # that NVIDIA has a compiler for
    tested: tuple[str, ...]  # by us
    lacks: tuple[str, ...] = ()
    remedy: str = _REMOTE


PLATFORMS = {
    "linux": Platform(
        "Linux", machines=("x86_64", "aarch64"), tested=("x86_64",), remedy=_INSTALL
    ),
    "win32": Platform(
        "Windows",
        machines=("AMD64",),
        tested=(),
        lacks=(
            "no limit on the memory of a kernel",
            "the compiler may read any file",
            "two runs may write one journal",
        ),
        remedy=_INSTALL,
    ),
    "darwin": Platform(
        "macOS",
        machines=(),
        tested=(),
    ),
}  # fmt: skip


def platform_fact(system: str, machine: str) -> Fact:
    """What is known of a platform; ``system`` is as in ``sys.platform``."""
    found = PLATFORMS.get(system)
    if found is None:
        known = ", ".join(platform.title for platform in PLATFORMS.values())
        return Fact(False, "platform", f"{system} is not one of {known}", _REMOTE)
    title = f"{found.title} on {machine}"
    if machine not in found.machines:
        return Fact(False, "platform", f"{title}: NVIDIA has no CUDA compiler for it", _REMOTE)
    if machine in found.tested:
        return Fact(True, "platform", f"{title}, where this package is tested")
    without = "; ".join(("not tested by us", *found.lacks))
    return Fact(True, "platform", f"{title}: {without}")


def commands_fact(system: str, compilers: tuple[str, ...]) -> Fact:
    """Which commands work with the ``compilers`` that are there, the default one first."""
    if compilers:
        with_it = "" if compilers[0] == DEFAULT else f" with --compiler {compilers[0]}"
        return Fact(True, "commands", f"all work{with_it}")
    rest = [verb for verb in line_parser().commands if verb not in COMPILING]
    remedy = PLATFORMS[system].remedy if system in PLATFORMS else _REMOTE
    said = f"without a compiler {_listed(rest)} work; {_listed(COMPILING)} do not"
    return Fact(False, "commands", said, remedy)


def _listed(words: list[str] | tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"
