"""A compiler in a child process: a text that it never ends on, or dies of, costs one child.

NVRTC cannot be interrupted, and a few lines of templates or macros keep it busy for ever.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import Any

from optiml_magic.child.process import Child
from optiml_magic.child.spare import SPARES
from optiml_magic.chips import Chip
from optiml_magic.compilers import wire
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.includes import refused
from optiml_magic.errors import InternalError, MachineError
from optiml_magic.model.build import Build, CompileFailure, Diagnostic

_START_SECONDS = 120.0
_END_SECONDS = 1.0
_WHERE = ("PATH", "CUDA_HOME", "CUDA_PATH")  # what decides which compiler a name means
_DESCRIBED: dict[tuple[str | None, ...], wire.Described] = {}


class HostedCompiler:
    """``nvrtc`` or ``nvcc`` by name, in a child that is started when needed and after each loss.

    Args:
        name: of the compiler.
        seconds: of one compilation; then the child is killed and the text does not compile.
        include: the folders that options will name; others cost a new child.
        others: seconds of each compilation after the first that came to an end, if fewer.
    """

    def __init__(
        self,
        name: str,
        seconds: float = 60.0,
        include: Sequence[str] = (),
        others: float | None = None,
    ) -> None:
        self._name = name
        self._seconds = self._limit = seconds
        self._others = seconds if others is None else min(seconds, others)
        self._include = tuple(include)
        self._child: Child | None = None
        self._end: Any = None  # closes the child with this object, if nobody did
        self.restarts = 0
        self._key = (name, *(os.environ.get(variable) for variable in _WHERE))
        if self._key not in _DESCRIBED:
            self._start()

    @property
    def version(self) -> str:
        return self._described.version

    @property
    def major(self) -> int:
        return self._described.major

    @property
    def confined(self) -> bool:
        """Whether the system keeps the compiler from every file outside of its folders."""
        return self._described.confined

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build | CompileFailure:
        complaint = refused(text, options)
        if complaint is not None:
            return CompileFailure((complaint,), complaint.message)
        _ = self._described  # what the machine lacks is no fault of the text
        if not set(options.include) <= set(self._include):
            self._include = options.include
            self.close()
        request, last = wire.Compile(text, kernels, chip, options), ""
        for _attempt in range(2):  # NVRTC dies of a text that it takes a moment later, now and then
            try:
                answer, _ = self._running().ask(request, self._limit)
            except TimeoutError:
                self._lost()
                limit = f"the compiler did not end within {self._limit:g} s and was killed"
                return _failed(f"{limit}; {self._what_limits()}")
            except EOFError:
                last = self._lost()
                continue
            if isinstance(answer, Build | CompileFailure):
                self._limit = self._others
                return answer
            raise InternalError(f"the compile host answered {answer}")
        return _failed(f"the compiler crashed on this text twice: {last}")

    def _what_limits(self) -> str:
        if self._limit < self._seconds:
            most = "a candidate may take a quarter of the search's seconds, at least 10"
            return f"{most}; raise --seconds"
        return "OPTIML_COMPILE_SECONDS is the limit"

    def close(self) -> None:
        """Let go of the child, which may wait for the next owner (``child.spare``)."""
        if self._child is not None:
            self._end.detach()
            child, self._child = self._child, None
            SPARES.keep(child, _END_SECONDS)

    @property
    def _described(self) -> wire.Described:
        """Asked once in this process: where every build is remembered, no child has to start."""
        if self._key not in _DESCRIBED:
            _DESCRIBED[self._key] = self._asked()
        return _DESCRIBED[self._key]

    def _asked(self) -> wire.Described:
        try:
            answer, _ = self._running().ask(wire.Describe(), _START_SECONDS)
        except (TimeoutError, EOFError) as lost:
            raise MachineError(
                f"the compile host does not start: {self._lost()}", fix="see optiml doctor"
            ) from lost
        if isinstance(answer, CompileFailure):  # memory ran out as the compiler was loaded
            raise MachineError(
                f"the compile host does not start: {answer.log}", fix="free memory, and try again"
            )
        assert isinstance(answer, wire.Described)
        return answer

    def _running(self) -> Child:
        if self._child is None or not self._child.alive:
            self.close()
            self._start()
        assert self._child is not None
        return self._child

    def _start(self) -> None:
        arguments = [self._name, *self._include]
        child = SPARES.take("optiml_magic.compilers.host", arguments, wire.KINDS)
        self._child, self._end = child, weakref.finalize(self, child.close, _END_SECONDS)

    def _lost(self) -> str:
        """End a child that does not answer; returns the last that it printed."""
        assert self._child is not None
        self._end.detach()
        last = self._child.kill()
        self._child = None
        self.restarts += 1
        return last


def _failed(message: str) -> CompileFailure:
    return CompileFailure((Diagnostic(0, "error", message),), message)
