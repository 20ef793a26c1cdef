"""A program's text for a compiler that knows nothing of this package: markers and headers in it."""

from __future__ import annotations

import re
from pathlib import Path

import optiml_magic.compilers
from optiml_magic.source.program import Program
from optiml_magic.source.spaces import marked

_SHIMS = Path(optiml_magic.compilers.__file__).parent / "shims"
_PRELUDE = ("stdint.h", "float.h", "limits.h", "math.h")
_DEFINED = re.compile(r"(?:typedef [\w ]+ (\w+);|#define (\w+) .*)")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([\w.]+)[>\"].*$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def for_nvcc(program: Program) -> str:
    """The text for nvcc: the headers that our prelude stands for are included by name."""
    text = marked(program.compiled_text(numbered=False))
    words = set(_WORD.findall(text))
    headers = [h for h in _PRELUDE if words & _names(h).keys()]
    needed = [f"#include <{header}>\n" for header in headers if f"<{header}>" not in text]
    return "".join(needed) + text


def for_nvrtc(program: Program) -> str:
    """The text for NVRTC alone, which has no standard headers: what it uses of them is written out.

    A header that the toolkit has under ``cuda/std`` is taken from there.
    """
    text = marked(program.compiled_text(numbered=False))
    text = _INCLUDE.sub(lambda found: _replaced(found[0], found[1]), text)
    known = {name: line for header in _PRELUDE for name, line in _names(header).items()}
    words = set(_WORD.findall(text))
    while more := {w for n in words & known.keys() for w in _WORD.findall(known[n])} - words:
        words |= more
    lines = [line for name, line in known.items() if name in words and not _defines(text, name)]
    return "".join(f"{line}\n" for line in lines) + text


def _replaced(line: str, header: str) -> str:
    shim = _SHIMS / header
    if not shim.is_file():
        return line
    body = [x for x in shim.read_text().splitlines() if not x.startswith(("#pragma once", "//"))]
    if any("cuda/std/" in x for x in body):
        return "\n".join(body)
    return f"// {line.strip()}"


def _names(header: str) -> dict[str, str]:
    """The names that a header of the prelude defines, each with its line."""
    lines = (_SHIMS / header).read_text().splitlines()
    return {m[1] or m[2]: m[0] for line in lines if (m := _DEFINED.fullmatch(line))}


def _defines(text: str, name: str) -> bool:
    return re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}\b", text, re.MULTILINE) is not None
