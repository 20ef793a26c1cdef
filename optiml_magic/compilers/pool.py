"""Several compilers side by side: texts that will be asked for are compiled before they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from queue import SimpleQueue

from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.model.build import Build, CompileFailure

Request = tuple[str, tuple[str, ...], Chip, CompileOptions]
"""What a compiler is asked: text, names of kernels, chip, options."""


class CompilerPool:
    """A compiler over others of the same kind, each used by one thread at a time.

    Whoever waits has one too; another is made when there is more to do, up to ``count`` of them.
    """

    def __init__(self, first: Compiler, more: Callable[[], Compiler], count: int) -> None:
        self._more = more
        self._left = count - 1
        self._free: SimpleQueue[Compiler] = SimpleQueue()
        self._free.put(first)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="optiml-compile")
        self._known: dict[Request, Future[Build | CompileFailure]] = {}

    @cached_property
    def version(self) -> str:
        with self._one() as compiler:
            return compiler.version

    @cached_property
    def major(self) -> int:
        with self._one() as compiler:
            return compiler.major

    def ahead(self, key: Request) -> None:
        """Begin to compile; ``compile`` of the same has the result once it is there."""
        if key in self._known:
            return
        if self._left and self._free.empty():
            self._left -= 1
            self._free.put(self._more())
        self._known[key] = self._threads.submit(self._compiled, key)

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build | CompileFailure:
        key = text, kernels, chip, options
        begun = self._known.pop(key, None)
        return begun.result() if begun else self._compiled(key)

    def close(self) -> None:
        """Leave out what has not begun, and wait for the rest."""
        self._threads.shutdown(cancel_futures=True)

    def _compiled(self, key: Request) -> Build | CompileFailure:
        with self._one() as compiler:
            return compiler.compile(*key)

    @contextmanager
    def _one(self) -> Iterator[Compiler]:
        """A compiler that nobody else asks meanwhile: answers would go to the wrong one."""
        compiler = self._free.get()
        try:
            yield compiler
        finally:
            self._free.put(compiler)
