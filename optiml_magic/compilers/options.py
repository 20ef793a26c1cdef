"""The options of a compile: what the task's kernel needs and what the user's settings ask for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from optiml_magic.compilers.base import CompileOptions
from optiml_magic.errors import UsageError
from optiml_magic.model.task import Task
from optiml_magic.settings import Settings

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

# What this package says to nvcc itself, and what would bring in files that no cache key sees.
_OURS = re.compile(
    r"-I.*|-{1,2}(?:include-path|isystem|system-include|include|pre-include|std|gpu-architecture|arch|"
    r"gencode|generate-code|gpu-code|code|o|output-file|odir|output-directory|c|ptx|cubin|fatbin|link|"
    r"dc|dw|rdc|relocatable-device-code|optf|options-file|keep|keep-dir|dryrun|x|run|lto|M|MM|E)(?:=.*)?"
)  # fmt: skip


def options_of(task: Task, settings: Settings) -> CompileOptions:
    """The options for every compile of a task.

    Raises UsageError for a folder that does not exist, a name that no macro or header can have, and
    an argument of nvcc that has its own option here.
    """
    return CompileOptions(
        std=settings.std,
        fast_math=settings.fast_math,
        defines=tuple(sorted(_defines(task.defines))),
        include=tuple(str(folder) for folder in _folders(task)),
        headers=tuple(sorted((checked_header(name), text) for name, text in task.headers.items())),
        arguments=_arguments(settings.nvcc_args),
    )


def checked_header(name: str) -> str:
    """The name of a header that is typed; UsageError where no ``#include`` could reach it."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or re.search(r'[<>"\\\n]', name):
        raise UsageError(f"{name!r} is not a name for a header", fix="name it like util.cuh")
    return name


def _defines(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"-D {name}: a macro cannot be called that",
                fix="write -D NAME or -D NAME=VALUE; a macro with parameters belongs in a header",
            )
        yield name, re.sub(r"[\r\n]+", " ", str(value))


def _folders(task: Task) -> Iterator[Path]:
    own = [task.kernel.parent] if isinstance(task.kernel, Path) else []
    for given in (*own, *task.include):
        folder = Path(given).expanduser().absolute()
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}", fix="give -I a folder that exists")
        yield folder


def _arguments(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as cause:
        raise UsageError(f"{cause} in --nvcc-args `{text}`", fix="close the quote") from None
    for word in words:
        # Also what a list passes on: -Xcompiler=-O2,-I/usr/include
        if any(_OURS.fullmatch(part) for part in re.split("[=,]", word)) or word.startswith("@"):
            raise UsageError(
                f"--nvcc-args cannot hold {word}",
                fix="use -I, -D, --std, --device and #include; how it compiles is up to nvcc",
            )
    return words
