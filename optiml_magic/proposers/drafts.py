"""From a model's draft to an idea of the search, or the reason why it is none.

What is refused here would fail in the evaluation as well, or should not reach a compiler; refusing
it early saves an evaluation, and the model is told the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice, pairwise

from optiml_magic.binding import launched
from optiml_magic.binding.interface import pairs
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.includes import refused
from optiml_magic.errors import UsageError
from optiml_magic.model.candidate import Proposal
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.answer import Draft, Expectation, Replacement
from optiml_magic.source.lexer import PreprocessorLine
from optiml_magic.source.program import Program, parse_program

_LONGEST = 200_000  # characters of a program
_MOST_CHANGES = 4  # of the arithmetic, that are told of one draft
_LARGEST_FACTOR = 1e6  # that is promised; what vanishes is infinitely lower
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FENCE = re.compile(r"\s*```[\w+-]*\n(.*?)\n?```\s*", re.DOTALL)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HEADER = re.compile(r"<\s*(?P<folder>[A-Za-z_]\w*/)?(?P<name>[A-Za-z_]\w*(?:/\w+)*(?:\.\w+)?)\s*>")
_FOLDERS = ("cooperative_groups/", "cub/", "cuda/", "nv/", "thrust/")  # of the toolkit
_TOOLKIT = re.compile(r"(?:cuda|curand|sm_\d+|vector|math|device)\w*\.h(?:pp)?")
_HEADERS = frozenset(
    {
        "assert.h", "cooperative_groups.h", "float.h", "inttypes.h", "limits.h", "mma.h",
        "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
        "algorithm", "array", "atomic", "bit", "cassert", "cfloat", "cinttypes", "climits",
        "cmath", "complex", "concepts", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring",
        "functional", "initializer_list", "iterator", "limits", "memory", "new", "numeric",
        "optional", "ratio", "tuple", "type_traits", "utility", "variant",
    }
)  # fmt: skip
_ASKS = re.compile(r"__has_(?:include|embed)")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_KNOWN_LINES = frozenset(
    {
        "", "include", "define", "undef", "pragma", "line", "error", "warning",
        "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif",
    }
)  # fmt: skip


class Unusable(Exception):  # noqa: N818  # an expected end, caught by the proposer alone
    """A draft that becomes no idea; the message tells the model why.

    ``line`` counts from 1 in its text, 0 where it is about none.
    """

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


def idea(
    draft: Draft,
    parent: Program,
    root: Program,
    *,
    proposer: str,
    tools: Collection[str] = (),
) -> Idea:
    """The idea that a draft stands for; it can answer ``tools``. Raises Unusable."""
    text = _new_text(draft, parent.text)
    check(text, parent, root)
    told = Proposal(
        text,
        one_line(draft.title, 120) or "an edit without a title",
        proposer,
        one_line(draft.rationale, 1000),
        _promised(draft.hypothesis),
        answers=draft.answers if draft.answers and draft.answers in tools else "",
        arithmetic=arithmetic_of(draft.arithmetic),
    )
    return replace(Idea.of(told), paid=True)


def arithmetic_of(told: list[str] | None) -> tuple[str, ...]:
    """What a model says that it changes of the arithmetic."""
    return tuple(one_line(words, 80) for words in (told or [])[:_MOST_CHANGES])


def unfenced(program: str) -> str:
    """A program without the fence that a model may set round it."""
    fenced = _FENCE.fullmatch(program)
    return fenced[1] + "\n" if fenced else program


def _promised(expected: Expectation | None) -> Hypothesis | None:
    if expected is None:
        return None
    return Hypothesis(
        one_line(expected.metric, 120),
        expected.direction,
        one_line(expected.because, 500),
        _factor(expected.factor),
    )


def _factor(told: float | None) -> tuple[float, float]:
    """A model's factor as a range; one below 1 is meant as after over before."""
    if told is None or not math.isfinite(told) or told <= 0.0:
        return 1.0, 1.0
    factor = min(max(told, 1.0 / told), _LARGEST_FACTOR)
    return factor, factor


def check(text: str, parent: Program, root: Program, *, by_hand: bool = False) -> None:
    """Raises Unusable unless ``text`` is a program that could take the parent's place.

    What a person wrote ``by_hand`` may include more of the headers of the task.
    """
    if text.strip() == parent.text.strip():
        raise Unusable("it does not change the program")
    if len(text) > _LONGEST:
        raise Unusable(f"the program has more than {_LONGEST} characters")
    if (odd := _CONTROL.search(text)) and odd[0] not in parent.text:
        raise Unusable(f"the program holds the control character U+{ord(odd[0]):04X}")
    try:
        program = parse_program(text)
        used = _buffers(program)
        known = _buffers(root)
    except UsageError as unfit:
        raise Unusable(_described(unfit, text), unfit.line or 0) from None
    if not program.launches:
        raise Unusable("the program has no launch directive")
    for tune in program.tunes:
        if tune.value is None:
            raise Unusable(f"`{tune.name}` has no value: write `{tune} = {tune.values[0]}`")
    unknown = used - known - {directive.name for directive in program.scratch}
    if unknown:
        raise Unusable(
            f"the task has no buffer {', '.join(f'`{n}`' for n in sorted(unknown))}: it has "
            f"{', '.join(sorted(known))}; a temporary needs a scratch directive"
        )
    _check_device_only(program, parent, by_hand=by_hand)


def one_line(text: str, longest: int) -> str:
    """A model's words, fit for a terminal and a table."""
    words = " ".join(_CONTROL.sub(" ", text).split())
    return words if len(words) <= longest else words[: longest - 3] + "..."


def _new_text(draft: Draft, parent: str) -> str:
    if draft.edits and draft.program:
        raise Unusable("it gives both `edits` and `program`: give one, and null for the other")
    if draft.edits:
        return _edited(parent, draft.edits)
    if draft.program:
        return with_newlines_of(parent, unfenced(draft.program))
    raise Unusable("it gives neither `edits` nor `program`")


def _edited(parent: str, edits: list[Replacement]) -> str:
    """The parent with all edits made at once, so that none sees what another put in."""
    spans = sorted(_spans(parent, edits))
    for (_, end, _), (start, _, _) in pairwise(spans):
        if start < end:
            raise Unusable("two of its edits overlap")
    text = parent
    for start, end, replacement in reversed(spans):
        text = text[:start] + replacement + text[end:]
    return text


def _spans(parent: str, edits: list[Replacement]) -> Iterator[tuple[int, int, str]]:
    for number, edit in enumerate(edits, 1):
        find = with_newlines_of(parent, edit.find)
        if not find.strip():
            raise Unusable(f"the `find` of edit {number} is empty")
        places = _places(parent, find)
        if len(places) != 1:
            times = "occurs more than once" if places else "does not occur"
            raise Unusable(f"the `find` of edit {number} {times} in the program: {find[:80]!r}")
        yield *places[0], with_newlines_of(parent, edit.replace)


def _places(parent: str, find: str) -> list[tuple[int, int]]:
    """Where a text stands, character by character or else with other blanks; two at most."""
    at = parent.find(find)
    if at >= 0:
        ends = [start for start in (at, parent.find(find, at + 1)) if start >= 0]
        return [(start, start + len(find)) for start in ends]
    tokens = [re.escape(token) for token in _TOKEN.findall(find)]
    # No blank may go where two words would become one, nor one be cut out of a longer word.
    spelled = re.sub(r"(?<=\w)\\s\*(?=\w)", r"\\s+", r"\s*".join(tokens))
    whole = re.sub(r"^(?=\w)|(?<=\w)$", r"\\b", spelled)
    return [match.span() for match in islice(re.finditer(whole, parent), 2)]


def with_newlines_of(parent: str, text: str) -> str:
    """A program from Windows keeps its own line ends, which models do not write."""
    text = text.replace("\r\n", "\n")
    return text.replace("\n", "\r\n") if "\r\n" in parent else text


def _buffers(program: Program) -> set[str]:
    """The names of what the launches pass for pointers."""
    return {
        expression.text.strip()
        for launch, kernel in launched(program)
        for parameter, expression in pairs(launch, kernel)
        if parameter.pointer
    }


def _check_device_only(program: Program, parent: Program, *, by_hand: bool) -> None:
    """No launches from code, and no file of this machine pulled in through the preprocessor.

    A file that is no CUDA would come back in the compiler's complaint, and from there go out in the
    next prompt. So may one of the task's own folder, which no compiler would refuse: only the
    headers of the toolkit and those that the parent has already are let through.
    """
    if "<<<" in program.lexed.code:
        raise Unusable("it launches from code with <<<...>>>: write launch directives")
    for sign, called in (("%:", "digraphs"), ("??", "trigraphs")):
        if sign in program.lexed.code and sign not in parent.lexed.code:
            raise Unusable(f"it spells the preprocessor with {called}")
    if _LONE_RETURN.search(program.text) and not _LONE_RETURN.search(parent.text):
        raise Unusable("it holds a carriage return alone: end lines with \\n")
    kept = {line.text for line in parent.lexed.lines}
    new = [line for line in program.lexed.lines if line.text not in kept]
    included = [line.rest for line in program.lexed.lines if line.word == "include"]
    spelled = any(not name.startswith(("<", '"')) for name in included)
    for line in new:
        if not _harmless(line, by_hand=by_hand) or (spelled and line.word in ("define", "undef")):
            shown = one_line(line.text, 80)
            raise Unusable(f"`{shown}` is not allowed: include CUDA's own headers alone, as <...>")
    # What only a compiler's way to join lines makes of the text, or a pragma.
    unfit = refused(program.text, CompileOptions())
    if unfit is not None and refused(parent.text, CompileOptions()) is None:
        raise Unusable(f"{unfit.message}: include CUDA's own headers alone, as <...>", unfit.line)


def _harmless(line: PreprocessorLine, *, by_hand: bool) -> bool:
    if line.word == "include":
        header = _HEADER.fullmatch(line.rest)
        if header is None or by_hand:
            return header is not None
        if header["folder"]:
            return header["folder"] in _FOLDERS
        return header["name"] in _HEADERS or _TOOLKIT.fullmatch(header["name"]) is not None
    if _ASKS.search(line.text):
        return False
    return line.word in _KNOWN_LINES and bool(line.word or not line.rest)


def _described(unfit: UsageError, text: str) -> str:
    lines = text.splitlines()
    line = unfit.line or 0
    quoted = one_line(lines[line - 1], 120) if 0 < line <= len(lines) else ""
    parts = [unfit.message, f"in `{quoted}`" if quoted else "", unfit.fix]
    return "; ".join(part for part in parts if part)[:500]
