"""Tasks for kernels of which only the text is known: small arrays, small sizes, a few threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from optiml_magic import Task
from optiml_magic.errors import OptimlError
from optiml_magic.kernels.signature import Kernel, Parameter, kernels

_ELEMENTS = 1 << 14
_BLOCKS = {1: "32", 2: "8, 8", 3: "4, 4, 4"}


def made_up(text: str, notes: Mapping[str, Any]) -> Iterator[Task]:
    """Ways to run the kernel that the notes name, the likeliest first."""
    found = _kernel(text, notes)
    if found is None:
        return
    kernel, template = found
    axes = 1 + max([i for i, a in enumerate("xyz") if f"Idx.{a}" in text], default=0)
    given = notes.get("block_best_effort") or ()
    blocks = [", ".join(map(str, given))] if given and np.prod(given) <= 512 else []
    for block in dict.fromkeys([*blocks, _BLOCKS[axes]]):
        grid = "2, 2" if axes > 1 else "3"
        for sizes in ((11, 13, 7, 9), (64, 64, 64, 64), (8, 4, 2, 1)):
            try:
                values = _values(kernel, sizes)
            except KeyError:
                return
            named = f"{kernel.name}<{template}>" if template else kernel.name
            shared = " shared(16384)" if kernel.dynamic_shared else ""
            launch = f"#pragma optiml launch {named} grid({grid}) block({block}){shared}\n"
            changed = tuple(p.name for p in kernel.parameters if p.pointer and not p.const)
            yield Task(launch + text, inputs=values, inout=changed)


def _kernel(text: str, notes: Mapping[str, Any]) -> tuple[Kernel, str] | None:
    try:
        found = kernels(text)
        wanted = str(notes.get("kernel", "")).rpartition("::")[2]
        chosen = [k for k in found if k.name.rpartition("::")[2] == wanted] or list(found)
        spelled = str(notes.get("template") or "")
        template = spelled.partition("<")[2].removesuffix(">")
        arguments = [part.strip() for part in template.split(",")] if template else []
        return chosen[0].instantiate(arguments), template
    except (OptimlError, IndexError):
        return None


def _values(kernel: Kernel, sizes: tuple[int, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {
        parameter.name: _array(parameter, rng) if parameter.pointer
        else _scalar(parameter, sizes[at % len(sizes)])
        for at, parameter in enumerate(kernel.parameters)
    }  # fmt: skip


def _array(parameter: Parameter, rng: np.random.Generator) -> Any:
    if parameter.dtype is None or parameter.depth > 1 or parameter.dtype == "bfloat16":
        raise KeyError(parameter.name)
    kind = np.dtype(parameter.dtype)
    shape = (_ELEMENTS, parameter.lanes) if parameter.lanes > 1 else (_ELEMENTS,)
    if kind.kind == "f":
        return rng.uniform(0.5, 2.0, shape).astype(kind)
    return rng.integers(0, 2 if kind.kind == "b" else 7, shape).astype(kind)


def _scalar(parameter: Parameter, size: int) -> Any:
    if parameter.dtype is None or parameter.lanes > 1 or parameter.dtype == "bfloat16":
        raise KeyError(parameter.name)
    kind = np.dtype(parameter.dtype)
    return kind.type(0.75 if kind.kind == "f" else 1 if kind.kind == "b" else size)
