"""A search beside the notebook's cells: a thread, and a handle to ask, steer and collect it."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, Never, TypeVar

from optiml_magic.errors import UsageError
from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import Refused
from optiml_magic.reports.quantities import number_of
from optiml_magic.search.controls import Controls

T = TypeVar("T")
Progress = Callable[[Step, Refused], None]

_USES = {"done": ".result() has it", "paused": ".resume() lets it go on, .stop() ends it"}
_GRACE = 3.0  # seconds at the interpreter's exit; a notebook server kills its kernel after five


class Handle(Generic[T]):
    """A search that runs in a thread of its own and prints nothing.

    ``run`` gets a function to call with each step and all refusals so far, and ``controls`` to
    obey; what it returns or raises is the handle's result. Closing the interpreter stops the search
    as ``stop`` does, and waits three seconds for it; its journal holds every finished evaluation
    either way.
    """

    def __init__(self, run: Callable[[Progress, Controls], T], *, name: str) -> None:
        self.name = name
        self.controls = Controls()
        self._run = run
        self._future: Future[T] = Future()
        self._began = time.monotonic()
        self._seconds: float | None = None
        self._evaluations = 0
        self._thread = threading.Thread(target=self._work, name=f"optiml-{name}", daemon=True)
        _RUNNING.add(self)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether there is a result, or an error to raise."""
        return self._future.done()

    @property
    def state(self) -> str:
        """``running``, ``paused``, ``stopping``, ``done`` or ``failed``.

        ``paused`` from when that is asked for: the evaluation in flight may still be running.
        """
        if not self.done:
            unstopped = "paused" if self.controls.paused else "running"
            return "stopping" if self.controls.stopped else unstopped
        return "failed" if self._future.exception() else "done"

    @property
    def evaluations(self) -> int:
        """How many are finished."""
        return self._evaluations

    @property
    def seconds(self) -> float:
        """How long it runs, or ran."""
        return time.monotonic() - self._began if self._seconds is None else self._seconds

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result; raises what the search raised, or TimeoutError.

        Ctrl-C ends the waiting, not the search.
        """
        return self._future.result(timeout)

    def stop(self) -> None:
        """End the search after the evaluation in flight; ``result`` then has the best so far.

        A search that is paused ends at once.
        """
        self.controls.stop()

    def pause(self) -> None:
        """Let the search wait after the evaluation in flight; its budget of seconds waits too."""
        self.controls.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.controls.resume()

    def suggest(self, program: str, parent: int | None = None) -> None:
        """Have a program that you wrote evaluated next, as an edit of candidate ``parent``.

        Without one it is an edit of the best so far. UsageError with its line where it cannot be
        one, and where the search has not begun or is over.
        """
        self.controls.require(parent, program)

    def _work(self) -> None:
        try:
            result = self._run(self._count, self.controls)
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is the caller's
            self._seconds = self.seconds
            self._future.set_exception(error)
        else:
            self._seconds = self.seconds
            self._future.set_result(result)
        finally:
            _RUNNING.discard(self)

    def _count(self, _: Step, __: Refused) -> None:
        self._evaluations += 1

    def __reduce__(self) -> Never:
        raise UsageError(
            f"the search `{self.name}` cannot be pickled", fix="save its .result(): that can be"
        )

    def __repr__(self) -> str:
        if self.state == "running" and not self._evaluations:
            # What the cell that began it shows for good, so nothing here may grow old.
            return f"{self.name}: search begun; .result() waits for it, .stop() ends it"
        head = f"{self.name}: {self.state}"
        tail = f"{number_of(self._evaluations, 'evaluation')} in {self.seconds:.1f} s"
        error = self._future.exception() if self.done else None
        if error is not None:
            return f"{head}, {tail}: {type(error).__name__}: {error}"
        use = _USES.get(self.state, ".result() waits for it, .stop() ends it")
        return f"{head}, {tail}; {use}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The result's own views once there is one."""
        if self.state == "done":
            show = getattr(self.result(), "_repr_mimebundle_", None)
            if show is not None:
                bundle: dict[str, Any] = show(include=include, exclude=exclude)
                return bundle
        return {"text/plain": repr(self)}


_RUNNING: weakref.WeakSet[Handle[Any]] = weakref.WeakSet()


def _end_all() -> None:
    """Stop every search, then give all of them together a few seconds to close what they hold."""
    running = list(_RUNNING)
    for handle in running:
        handle.stop()
    until = time.monotonic() + _GRACE
    for handle in running:
        handle._thread.join(max(0.0, until - time.monotonic()))  # noqa: SLF001  # this module's own


atexit.register(_end_all)
