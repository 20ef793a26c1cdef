"""Compilers side by side: what was asked for ahead is compiled once, each child by one thread."""

from __future__ import annotations

import threading
from collections import Counter
from typing import ClassVar

from optiml_magic.chips import Chip, chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.pool import CompilerPool
from optiml_magic.model.build import Build, CompileFailure, Diagnostic

OPTIONS = CompileOptions()
H200 = chip("h200")


class Slow:
    """A compiler that waits until it may end, and knows whether two threads meet in it."""

    may_end = threading.Event()
    asked: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        self.busy = threading.Lock()

    @property
    def version(self) -> str:
        assert not self.busy.locked(), "two threads use one compiler"
        return "slow"

    @property
    def major(self) -> int:
        return 13

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build | CompileFailure:
        assert self.busy.acquire(blocking=False), "two threads use one compiler"
        try:
            assert self.may_end.wait(30)
            self.asked[text] += 1
            return CompileFailure((Diagnostic(0, "error", text),), text)
        finally:
            self.busy.release()


def test_what_was_asked_ahead_is_compiled_once_and_by_several() -> None:
    made: list[Slow] = []

    def another() -> Slow:
        made.append(Slow())
        return made[-1]

    pool = CompilerPool(another(), another, 3)
    texts = [f"text {number}" for number in range(8)]
    for text in (*texts, *texts):
        pool.ahead((text, (), H200, OPTIONS))
    assert 1 < len(made) <= 3
    Slow.may_end.set()
    found = [pool.compile(text, (), H200, OPTIONS) for text in (*texts, "not asked ahead")]
    pool.close()
    assert [f.log for f in found if isinstance(f, CompileFailure)] == [*texts, "not asked ahead"]
    assert set(Slow.asked.values()) == {1}


def test_the_version_is_asked_of_a_compiler_that_nobody_else_uses() -> None:
    """An answer to another thread would be taken for it."""
    Slow.may_end.clear()
    pool = CompilerPool(Slow(), Slow, 1)
    pool.ahead(("text", (), H200, OPTIONS))
    asked: list[str] = []
    asking = threading.Thread(target=lambda: asked.append(pool.version))
    asking.start()
    asking.join(0.2)
    Slow.may_end.set()
    asking.join(30)
    pool.close()
    assert asked == ["slow"]
