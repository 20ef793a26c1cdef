"""What a user asks for: a kernel, what it should compute, and on which inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optiml_magic.errors import UsageError
from optiml_magic.files import read_kernel

_INTEGER = re.compile(
    r"\(?(-?(?:0[xX][0-9a-fA-F]+|(?P<octal>0[0-7]+)|[1-9][\d']*|0))(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU])\)?"
)
_DICTS = {
    "sizes": '{"n": 1000}',
    "verify_sizes": '{"n": 100}',
    "outputs": '{"out": "f4[n]"}, or inout=("out",) for arrays of `inputs`',
    "headers": '{"own.cuh": "..."}',
    "defines": '{"N": "8"}',
}
Inputs = Mapping[str, Any] | Callable[..., Mapping[str, Any]]


def _specified(name: str, spec: object) -> str:
    """An output's specification as text; raises UsageError for what is neither text nor array."""
    if isinstance(spec, str):
        return spec
    kind: Any = getattr(spec, "dtype", None)
    shape = getattr(spec, "shape", ())
    if getattr(kind, "kind", "-") in "biufc" and shape:  # a dtype, without an import of NumPy
        return f"{kind.kind}{kind.itemsize}[{', '.join(map(str, shape))}]"
    raise UsageError(
        f"`{name}` in `outputs` of a task has the type {type(spec).__name__}; it has to be text",
        fix=f'write outputs={{"{name}": "f4[n]"}}, or give a NumPy array of one or more axes',
    )


@dataclass(frozen=True)
class Task:
    """A kernel to check, profile or optimise, or a reference that one is made from.

    Attributes:
        kernel: CUDA C++ text with ``#pragma optiml`` directives, or the path of a ``.cu`` file;
            without one the task is for ``synthesize``.
        reference: a function of the inputs by name, returning an array, a tuple in the order of the
            output parameters, or a dict by name. Without one the input kernel is the oracle.
        inputs: arrays and scalars by parameter name; or a function ``inputs(rng, **sizes)`` that
            returns them, so that fresh data can be drawn.
        sizes: the keyword arguments of ``inputs`` when it is a function.
        verify_sizes: smaller ones of them for a task too large to verify: candidates are verified
            at these, and measured at ``sizes``, where their outputs are not checked.
        outputs: specifications such as ``{"out": "f4[rows, cols]"}``, or arrays that have shape and
            dtype, of which the contents do not matter; only needed where neither the
            reference nor an array of that name in ``inputs`` has shape and dtype, and to name the
            order of several, in which the reference returns a tuple.
        inout: buffers that are read and written, whose initial value is the one in ``inputs``.
        args: parameter values in order, by name, when names in the kernel differ from those in
            ``inputs``.
        rtol, atol: tolerances; by default computed from the dtype.
        bytes, flops: what the task needs at least to move and to compute in one run; by default the
            input kernel's own counts are used, and the output says so.
        headers: text of headers by the name that an ``#include`` of the kernel gives.
        include: folders that are searched for headers, a kernel file's own before them.
        defines: macros by name, as ``-D`` takes them; one that is an integer is known to the
            expressions of the directives.
        name: shown in reports; by default the kernel's.
        notes: what was understood of the text on the way, which the report repeats.
        oracle: who wrote the reference and who confirmed it, where the user did not write it.
    """

    kernel: str | Path = ""
    reference: Callable[..., Any] | None = None
    inputs: Inputs = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    verify_sizes: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    inout: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    rtol: float | None = None
    atol: float | None = None
    bytes: int | None = None
    flops: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    include: tuple[Path | str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    oracle: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str) and re.fullmatch(r"[^\n]*\.cu", self.kernel):
            object.__setattr__(self, "kernel", Path(self.kernel))
        for name, example in _DICTS.items():
            if not isinstance(given := getattr(self, name), Mapping):
                raise UsageError(
                    f"`{name}` of a task is a {type(given).__name__}, not a dict",
                    fix=f"write {name}={example}",
                )
        specified = {name: _specified(name, spec) for name, spec in self.outputs.items()}
        object.__setattr__(self, "outputs", specified)
        alone: object = self.inout
        if isinstance(alone, str):
            object.__setattr__(self, "inout", (alone,))

    def __getstate__(self) -> dict[str, Any]:
        name = getattr(self.reference, "__qualname__", "")
        if "<" in name:  # of a lambda, or of a function within another
            raise UsageError(
                f"the reference `{name}` of this task cannot be pickled",
                fix="define it with def at the top of a module or a notebook; "
                "a Result pickles without it",
            )
        return dict(self.__dict__)

    @property
    def constants(self) -> dict[str, int]:
        """The defines that are plain integers."""
        found = {name: _INTEGER.fullmatch(str(v).strip()) for name, v in self.defines.items()}
        return {
            name: int(match[1].replace("'", ""), 8 if match[2] else 0)
            for name, match in found.items()
            if match
        }

    def lacks(self, header: str) -> bool:
        """Whether neither the headers nor the folders of the task have a header of its own."""
        own = [self.kernel.parent] if isinstance(self.kernel, Path) else []
        folders = [Path(folder) for folder in (*own, *self.include)]
        return header not in self.headers and not any((f / header).is_file() for f in folders)

    @property
    def text(self) -> str:
        """The kernel's text, read from its file if it is a path."""
        if isinstance(self.kernel, Path):
            return read_kernel(self.kernel)
        return self.kernel
