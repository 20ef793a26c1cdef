"""What the preprocessor makes of host code: branches it leaves out, and macros that launch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optiml_magic.kernels.preprocessor.conditionals import Passage, passages
from optiml_magic.kernels.preprocessor.conditions import Names
from optiml_magic.kernels.preprocessor.expansion import Expander
from optiml_magic.kernels.preprocessor.lines import lines, without_literals
from optiml_magic.kernels.preprocessor.macros import Macro, define
from optiml_magic.kernels.preprocessor.uses import uses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optiml_magic.kernels.preprocessor.lines import Line

_LAUNCHES = frozenset({"<<<", "cudaLaunchKernel", "cudaLaunchCooperativeKernel"})
_LINKAGE = re.compile(
    r"^[ \t]*#[ \t]*if(?:def[ \t]+|[ \t]+defined[ \t]*\(?[ \t]*)__cplusplus\b[^\n]*\n\s*"
    r"(?:extern[ \t]*\"C\"\s*(?P<brace>\{)|\})[^\n]*\n\s*#[ \t]*endif\b[^\n]*",
    re.MULTILINE,
)
_LEAST_WORK = 10_000  # tokens that the uses of a short text may expand to; ours


def without_idle_branches(text: str, defines: Mapping[str, int]) -> str:
    """The text without the branches of ``#if`` that are not compiled; no byte of it moves.

    A name is a macro where the text or ``defines`` say so, as for the compiler of its kernels.
    """
    if "#" not in text:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    clean = without_literals(raw.decode("latin-1"))
    found = lines(raw.decode("latin-1"), clean)
    outside = dict(define(f"{name} {value}") for name, value in defines.items())
    written = {line.changed for line in found if line.word == "define"}
    names = Names(Expander(outside, _LEAST_WORK + len(raw)), written)
    left = bytearray(raw)
    for passage in passages(found, names, len(raw)):
        if passage.kind == "blank":
            part = raw[passage.start : passage.end]
            left[passage.start : passage.end] = re.sub(rb"[^\r\n]", b" ", part)
    return left.decode("utf-8", "surrogatepass")


def without_linkage(text: str) -> str:
    """The text without ``extern "C" {`` for C++ alone and its brace, which no grammar sees as one.

    Each stands between an ``#ifdef`` and its ``#endif``; no byte of the text moves.
    """
    found = [*_LINKAGE.finditer(text)]
    opened = sum(m["brace"] == "{" for m in found)
    if not found or 2 * opened != len(found):
        return text
    return _LINKAGE.sub(
        lambda m: re.sub(r"[^\r\n]+", lambda part: " " * len(part[0].encode()), m[0]), text
    )


def with_launches_expanded(text: str) -> str:
    """The text with the uses of macros that launch expanded, and no other; no line of it moves.

    A macro that the text defines in several ways stays as it is used.
    """
    if "<<<" not in text and "cudaLaunch" not in text:
        return text
    raw = text.encode("utf-8", "surrogatepass").decode("latin-1")
    clean = without_literals(raw)
    found = lines(raw, clean)
    launching = _launching(found)
    if not launching:
        return text
    passed = [Passage(line.start, line.end, "line") for line in found]
    parts, at = list[str](), 0
    expander = Expander({**launching}, _LEAST_WORK + len(raw))
    for start, end, expanded in uses(raw, clean, passed, expander):
        parts += [raw[at:start], expanded]
        at = end
    return "".join([*parts, raw[at:]]).encode("latin-1").decode("utf-8", "surrogatepass")


def _launching(found: Sequence[Line]) -> dict[str, Macro]:
    """The macros whose bodies launch, by themselves or by another of them."""
    macros: dict[str, Macro] = {}
    unclear: set[str] = set()
    for line in found:
        macro = define(line.rest)[1] if line.word == "define" else None
        known = macros.get(line.changed)
        if not isinstance(macro, Macro) or known not in (None, macro):
            unclear.add(line.changed)
        elif macro.parameters is not None:
            macros[line.changed] = macro
    macros = {name: macro for name, macro in macros.items() if name not in unclear}
    wanted = {*_LAUNCHES}
    while True:
        more = {name for name, macro in macros.items() if any(t.text in wanted for t in macro.body)}
        if more <= wanted:
            return {name: macro for name, macro in macros.items() if name in wanted}
        wanted |= more
