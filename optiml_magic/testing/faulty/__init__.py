"""Faulty kernels, each with its correct twin: what the checks must catch, and must not accuse.

Each is a ``.cu`` file beside this one. A line that ends with ``//-`` stands in the faulty kernel
alone, one with ``//+`` in the twin alone; the other keeps an empty line in its place, so that
numbers agree. ``//! KIND`` marks the lines that a hazard of that kind must name. ``launch`` and
``data`` comments say how it is run: inputs, in-out, zeroed and unset outputs, scratch, scalars;
``sanitizer`` names the tool of compute-sanitizer that should see the fault too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optiml_magic.devices.base import Array, Buffer, Case, Job, Order, Role
from optiml_magic.model.build import Build
from optiml_magic.model.launch import (
    Argument,
    BufferArgument,
    Dim3,
    Launch,
    LaunchPlan,
    ScalarArgument,
    Scratch,
)

_FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in _FOLDER.glob("*.cu")))
_MARK = re.compile(r"//([-+!])[ ]*(\w*)")
_LAUNCH = re.compile(r"^// launch: (\w+)(.*)$", re.MULTILINE)
_TOOL = re.compile(r"^// sanitizer: (\w+)$", re.MULTILINE)
_DATA = re.compile(r"^// data: (.*)$", re.MULTILINE)
_ARRAY = re.compile(r"(in|inout|out|zero|scratch):(\w+)\[(\d+)\](?:%(\d+))?")


@dataclass(frozen=True)
class Example:
    """One text of a pair, and how it is run."""

    name: str
    text: str
    expected: dict[str, tuple[int, ...]]  # lines by kind of hazard; nothing for a twin

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels, in the order of their launches."""
        return tuple(match[1] for match in _LAUNCH.finditer(self.text))

    @property
    def tool(self) -> str:
        """The tool of compute-sanitizer that covers its fault; empty where none does."""
        match = _TOOL.search(self.text)
        return match[1] if match else ""

    def case(self) -> Case:
        """Its arrays, drawn from a seed."""
        rng = np.random.default_rng(0)
        found = []
        for name, spec in self._data():
            if match := _ARRAY.fullmatch(spec):
                kind, dtype, size, limit = match.groups()
                if kind != "scratch":
                    role: Role = {"in": "input", "inout": "inout"}.get(kind, "output")  # type: ignore[assignment]
                    found.append(Buffer(name, role, _drawn(rng, dtype, int(size), limit)))
        return Case(self.name, tuple(found))

    def job(self, build: Build, *, checks: bool, order: Order = "forward") -> Job:
        """Its launches, in order, on its own case."""
        data = dict(self._data())
        arrays = {name: m for name, spec in data.items() if (m := _ARRAY.fullmatch(spec))}
        launches = tuple(
            _launch(match[1], match[2], data, build) for match in _LAUNCH.finditer(self.text)
        )
        scratch = tuple(
            Scratch(name, m[2], int(m[3])) for name, m in arrays.items() if m[1] == "scratch"
        )
        zeros = tuple(name for name, m in arrays.items() if m[1] == "zero")
        plan = LaunchPlan(launches, scratch, zeros)
        return Job(self.name, plan, 0, False, 20_000_000, order, checks)

    def _data(self) -> list[tuple[str, str]]:
        (line,) = _DATA.findall(self.text)
        parts = (part.partition("=") for part in line.split("//")[0].split())
        return [(name, spec) for name, _, spec in parts]


def faulty(name: str) -> Example:
    """The faulty kernel of that name."""
    return _example(name, dropped="+")


def twin(name: str) -> Example:
    """The correct kernel beside it."""
    return _example(name, dropped="-")


def _example(name: str, *, dropped: str) -> Example:
    lines: list[str] = []
    expected: dict[str, list[int]] = {}
    for number, line in enumerate((_FOLDER / f"{name}.cu").read_text().splitlines(), start=1):
        marks = _MARK.findall(line)
        if any(mark == dropped for mark, _ in marks):
            lines.append("")
            continue
        lines.append(_MARK.sub("", line).rstrip())
        for kind in (kind for mark, kind in marks if mark == "!" and dropped == "+"):
            expected.setdefault(kind, []).append(number)
    wanted = {kind: tuple(numbers) for kind, numbers in expected.items()}
    return Example(name, "\n".join(lines) + "\n", wanted)


def _drawn(rng: np.random.Generator, dtype: str, size: int, limit: str | None) -> Array:
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, int(limit or 100), size).astype(dtype)
    return rng.uniform(-1.0, 1.0, size).astype(dtype)


def _launch(kernel: str, words: str, data: dict[str, str], build: Build) -> Launch:
    options = dict(word.split("=") for word in words.split("//", maxsplit=1)[0].split())
    return Launch(
        build.names[kernel],
        _three(options["grid"]),
        _three(options["block"]),
        int(options.get("shared", 0)),
        tuple(_argument(name, data[name]) for name in options["args"].split(",")),
    )


def _three(text: str) -> Dim3:
    x, y, z = (*map(int, text.split(",")), 1, 1)[:3]
    return x, y, z


def _argument(name: str, spec: str) -> Argument:
    if _ARRAY.fullmatch(spec):
        return BufferArgument(name)
    dtype, value = spec.split(":")
    return ScalarArgument(np.array([int(value)], dtype).tobytes().hex())
