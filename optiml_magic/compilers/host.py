"""The compile host: ``python -m optiml_magic.compilers.host nvrtc FOLDER ...``.

A child that holds one compiler. The folders are those that the task includes from; with NVRTC no
file outside of them and of the toolkit's headers can be opened here once the compiler is loaded.
"""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
from pathlib import Path

from optiml_magic.child.confinement import available_memory, be_expendable, limit_memory, see_only
from optiml_magic.child.server import own_streams, serve
from optiml_magic.compilers import wire
from optiml_magic.compilers.base import Compiler
from optiml_magic.errors import MachineError, OptimlError
from optiml_magic.model.build import CompileFailure, Diagnostic
from optiml_magic.model.codec import to_json

_MOST_MEMORY = 8 << 30  # bytes; a large kernel of templates takes about one
_OWN = Path(__file__).parents[1]


def main(arguments: list[str]) -> int:
    """Serve the compiler named by the first argument."""
    be_expendable()
    _limit()
    requests, answers = own_streams()
    host = _CompileHost(arguments[0], arguments[1:])
    host.begin()
    serve(host.answer, wire.KINDS, requests, answers, reset=host.reset)
    return 0


def _limit() -> None:
    limit_memory(min(_MOST_MEMORY, max(available_memory(), _MOST_MEMORY // 4)))


class _CompileHost:
    def __init__(self, name: str, folders: list[str]) -> None:
        self._name = name
        self._folders = folders
        self._compiler: Compiler | None = None
        self._confined = False
        self._starved = False

    def begin(self) -> None:
        """Load the compiler before anybody asks; where it does not load, the first answer says."""
        with contextlib.suppress(OptimlError, MemoryError):
            self._compiler = self._opened()

    def answer(self, message: object) -> tuple[object, bytes]:
        try:
            return self._answered(message), b""
        except MemoryError:
            self._starved = True
            return _failed("the compiler ran out of memory"), b""

    def reset(self) -> None:
        """A compilation leaves nothing; the memory that is free now is the limit.

        Raises MachineError where memory ran out, and where a folder is not the one that was there
        when the door was shut: a new one of its name would stay shut to this process.
        """
        if self._starved:
            raise MachineError("memory ran out here", fix="start another host")
        if self._confined and self._compiler is not None:
            for folder in self._visible(self._compiler.major):
                try:
                    os.scandir(folder).close()
                except (FileNotFoundError, NotADirectoryError):
                    continue  # what is not there can be opened by nobody
                except OSError as shut:
                    message = f"{folder} cannot be seen from here: {shut.strerror}"
                    raise MachineError(message, fix="start another host") from shut
        _limit()

    def _visible(self, major: int) -> list[str | Path]:
        from optiml_magic.compilers.nvrtc import include_folders

        return [*include_folders(major), *self._folders]

    def _answered(self, message: object) -> object:
        compiler = self._compiler = self._compiler or self._opened()
        if isinstance(message, wire.Describe):
            return wire.Described(compiler.version, compiler.major, self._confined)
        if isinstance(message, wire.Compile):
            return compiler.compile(message.text, message.kernels, message.chip, message.options)
        raise ValueError(f"{type(message).__name__} is not a request")

    def _opened(self) -> Compiler:
        """The compiler, loaded as a whole before the door is shut behind it."""
        if self._name == "nvcc":  # starts programs of the system, which read what they please
            from optiml_magic.compilers.nvcc import NvccCompiler

            return NvccCompiler()
        if self._name != "nvrtc":
            raise MachineError(f"no compiler named {self._name!r}")
        from optiml_magic.compilers.nvrtc import NvrtcCompiler

        compiler = NvrtcCompiler()
        to_json(CompileFailure, _failed(""))  # loads what the first answer needs
        python = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")]
        self._confined = see_only([*self._visible(compiler.major), *python, _OWN, "/proc/self"])
        return compiler


def _failed(message: str) -> CompileFailure:
    return CompileFailure((Diagnostic(0, "error", message),), message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
