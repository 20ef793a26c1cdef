"""Completion and inspection in IPython: light, what they need is loaded when one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.interactiveshell import InteractiveShell

_FIRST = 1000.0  # before all others, which then need not run


class _Nothing(tuple[SimpleCompletion, ...]):
    """No completion, and still an answer: IPython goes on asking where there are none to count."""

    __slots__ = ()

    def __len__(self) -> int:
        return 1


def begin(shell: InteractiveShell) -> None:
    """Ask us first, for places in cells and on lines of ours."""

    def session() -> Any:
        from optiml_magic.magics.offer import Session

        hidden = shell.user_ns_hidden
        own = {n: v for n, v in shell.user_ns.items() if hidden.get(n, shell) is not v}
        magics = shell.magics_manager.registry.get("OptimlMagics")
        return Session(own, magics.going if magics else ())

    @context_matcher(priority=_FIRST, identifier="optiml")  # type: ignore[untyped-decorator]  # as IPython has it
    def matcher(context: CompletionContext) -> Any:
        if "%optiml" not in context.full_text:
            return {"completions": []}
        from optiml_magic.magics.completing import complete

        lines = context.full_text.split("\n")[: context.cursor_line]
        offset = sum(len(line) + 1 for line in lines) + context.cursor_position
        offer = complete(context.full_text, offset, session())
        if offer is None:
            return {"completions": []}
        found = [SimpleCompletion(word.text, type=word.kind) for word in offer.words]
        return {
            "completions": found or _Nothing(),
            "matched_fragment": offer.fragment,
            "ordered": True,
            "suppress": True,
        }

    assert shell.Completer is not None
    shell.Completer.custom_matchers.append(matcher)
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        _inspecting(kernel, session)


def _inspecting(kernel: Any, session: Callable[[], Any]) -> None:
    """What the front ends ask of a kernel at Shift+Tab goes by its own names of Python alone.

    An answer of ours says so in its metadata, so that none on Python is shown for CUDA.
    """
    by_name = kernel.do_inspect

    def do_inspect(code: str, cursor_pos: int, *details: Any, **more: Any) -> Any:
        line = None
        if "%optiml" in code:
            from optiml_magic.magics.completing import about

            line = about(code, cursor_pos, session())
        if line is None:
            return by_name(code, cursor_pos, *details, **more)
        data = {"text/plain": line} if line else {}
        return {"status": "ok", "found": bool(line), "data": data, "metadata": {"optiml": True}}

    kernel.do_inspect = do_inspect
