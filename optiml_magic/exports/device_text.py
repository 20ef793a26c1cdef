"""A program's text for a compiler that knows nothing of this package."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import optiml_magic.compilers
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.prelude import declared, standard
from optiml_magic.exports.headers import Headers
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.grammar import HEAD, parse_directive
from optiml_magic.source.lexer import lex
from optiml_magic.source.program import Program
from optiml_magic.source.spaces import marked

_SHIMS = Path(optiml_magic.compilers.__file__).parent / "shims"
_PRELUDE = ("stdint.h", "float.h", "limits.h", "math.h", "sys/types.h")
_DEFINED = re.compile(
    r"(?:typedef [\w ]+ (?P<type>\w+);|#define (?P<macro>\w+)(?:\(\w+\))? .*"
    r"|namespace std \{ using ::(?P<std>\w+); \}"
    r"|template <[^>]*> (?:struct|using|inline __device__ optiml_mixed<T, U>)"
    r" (?P<template>\w+)\b.*)"
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([\w./]+)[>\"].*$", re.MULTILINE)
_WORD = re.compile(r"(?:std::)?[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class DeviceText:
    """A program's text with all that its compilation was given: macros, headers, tuned values.

    ``missing`` are the ``#include`` lines whose headers only a ``-I`` of the user can find.
    """

    text: str
    missing: tuple[str, ...]


def device_text(
    program: Program, kernels: Sequence[str], fixed: Mapping[str, int], options: CompileOptions
) -> DeviceText:
    """The text of ``program`` for a compiler that is given no options but the standard.

    ``kernels`` are the name expressions of its launches. Its directives stay true of it, so that it
    can be read back: ``fixed`` names, which no directive of it gives a value, are written out.
    """
    text = _with_values_written(program.compiled_text(numbered=False), kernels, fixed)
    headers = Headers(options)
    text = headers.written_into(text)
    defines = "".join(f"#define {name} {value}".rstrip() + "\n" for name, value in options.defines)
    return DeviceText(defines + marked(text), tuple(headers.missing))


def for_nvcc(text: str) -> str:
    """The text for nvcc: the headers that our prelude stands for are included by name."""
    words = _words(text)
    headers = [*(h for h in _PRELUDE if words & _names(h).keys()), *standard([text])]
    needed = [f"#include <{header}>\n" for header in headers if f"<{header}>" not in text]
    return "".join(needed) + text


def for_nvrtc(text: str) -> str:
    """The text for NVRTC alone, which has no standard headers: what it uses of them is written out.

    A header that the toolkit has under ``cuda/std`` is taken from there.
    """
    headers = [h for h in standard([text]) if f"<{h}>" not in text]
    text = "".join(f"#include <{header}>\n" for header in headers) + text
    text = _INCLUDE.sub(lambda found: _replaced(found[0], found[1]), text)
    known = {name: line for header in _PRELUDE for name, line in _names(header).items()}
    words, own = _words(text), declared([text])
    while more := {w for n in words & known.keys() for w in _words(known[n])} - words:
        words |= more
    lines = [
        line
        for name, line in known.items()
        if name in words and name not in own and not _defines(text, name)
    ]
    return "".join(f"{line}\n" for line in lines) + text


def _with_values_written(text: str, kernels: Sequence[str], fixed: Mapping[str, int]) -> str:
    names = iter(kernels)
    pieces, at = [], 0
    for line in lex(text).active():
        if not HEAD.match(line.text):
            continue
        directive = parse_directive(line.text)
        spelled = text[line.start : line.end]
        if isinstance(directive, TuneDirective):
            spelled = f"// tuned: {str(directive).partition(' tune ')[2]}"
        else:
            if isinstance(directive, LaunchDirective) and directive.kernel is None:
                spelled = re.sub(r"\blaunch\b", f"launch {next(names)}", spelled, count=1)
            elif isinstance(directive, LaunchDirective):
                next(names)
            spelled = re.sub(r"\b[A-Za-z_]\w*", lambda word: _number(word[0], fixed), spelled)
        pieces += [text[at : line.start], spelled]
        at = line.end
    return "".join([*pieces, text[at:]])


def _number(word: str, fixed: Mapping[str, int]) -> str:
    value = fixed.get(word)
    return word if value is None else str(value) if value >= 0 else f"({value})"


def _replaced(line: str, header: str) -> str:
    shims = (folder / header for folder in (_SHIMS, _SHIMS / "ahead"))
    shim = next((path for path in shims if path.is_file()), None)
    if shim is None:
        return line
    skipped = ("#pragma once", "//", "#if", "#else", "#endif", "#include <optiml_")
    body = [x for x in shim.read_text().splitlines() if not x.startswith(skipped)]
    if any("cuda/std/" in x or "<cub/" in x for x in body):
        return "\n".join(body)
    return f"// {line.strip()}"


def _names(header: str) -> dict[str, str]:
    """The names that a header of the prelude defines, each with its line."""
    lines = (_SHIMS / header).read_text().splitlines()
    found = [m for line in lines if (m := _DEFINED.fullmatch(line))]
    return {m["type"] or m["macro"] or m["template"] or f"std::{m['std']}": m[0] for m in found}


def _words(text: str) -> set[str]:
    """The names in a text, those of ``std`` with it and without."""
    return {w for found in _WORD.findall(text) for w in (found, found.removeprefix("std::"))}


def _defines(text: str, name: str) -> bool:
    return re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}\b", text, re.MULTILINE) is not None
