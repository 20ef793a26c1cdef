"""Where tasks come from: a Python file, or a cell and the notebook's namespace."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import runpy
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb
from typing import Any

from optiml_magic.commands import misspelt
from optiml_magic.commands.python.cell import kernel_in, macros_in, without_commands
from optiml_magic.errors import BindingError, OptimlError, SourceError, UsageError, nearest
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.signature import kernels
from optiml_magic.kernels.unit import lift
from optiml_magic.kernels.unpacked import unpacked
from optiml_magic.kernels.variables import device_variables
from optiml_magic.model.oracle import Example
from optiml_magic.model.task import Task
from optiml_magic.source.program import parse_program

_KERNELS = (".cu", ".cuh")
_QUOTED = "the kernel and how it is launched are read from this Python code; nothing of it is run"
_LAUNCH = "#pragma optiml launch "


def from_file(path: Path) -> list[Task]:
    """The tasks that a Python file defines as ``task`` or ``tasks``."""
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}", fix="give the path of a file that defines `task`"
        )
    if path.suffix in _KERNELS:
        raise UsageError(
            f"{path.name} is a kernel, and this command takes a Python file that defines its task",
            fix=f'write one: task = optiml_magic.Task("{path.name}", reference=..., inputs=...)',
        )
    folder = str(path.absolute().parent)
    sys.path.insert(0, folder)  # what the file imports may be beside it, as for python FILE
    try:
        names = runpy.run_path(str(path))
    except OptimlError:
        raise
    except Exception as cause:
        within = [frame.lineno for frame in extract_tb(cause.__traceback__)
                  if frame.filename == str(path)]  # fmt: skip
        place = f"{path.name}, line {within[-1]}" if within else path.name
        if isinstance(cause, SyntaxError) and cause.filename == str(path):
            place = f"{path.name}, line {cause.lineno}"
        raise UsageError(
            f"{place}: {type(cause).__name__}: {getattr(cause, 'msg', cause)}",
            fix=f"correct it there; `python {path}` shows all of it",
        ) from cause
    finally:
        sys.path.remove(folder)
    found = names.get("tasks", names.get("task"))
    given = list(found) if isinstance(found, (list, tuple)) else [found]
    tasks = [task for task in given if isinstance(task, Task)]
    if not tasks or len(tasks) < len(given):
        raise UsageError(
            f"{path.name} defines neither `task` nor `tasks`",
            fix="write task = optiml_magic.Task(kernel=..., reference=..., inputs=...)",
        )
    whole = [replace(task, kernel=_beside(path, task.kernel)) for task in tasks]
    return [_named(path, task) for task in whole] if len(whole) == 1 else whole


def _named(path: Path, task: Task) -> Task:
    """A task of several launches by the name of its file: none of its kernels is all of it."""
    return task if task.name or task.text.count(_LAUNCH) < 2 else replace(task, name=path.stem)


def _beside(path: Path, kernel: str | Path) -> str | Path:
    """A kernel's file that is not here is looked for in the folder of its task."""
    if isinstance(kernel, Path) and not kernel.exists() and (path.parent / kernel).exists():
        return path.parent / kernel
    return kernel


def from_cell(
    cell: str,
    options: argparse.Namespace,
    namespace: Mapping[str, Any],
    name: str = "",
    headers: Mapping[str, str] | None = None,
) -> Task:
    """The task of a cell: names in the kernel are names in the notebook."""
    misspelt.require_kernel(cell)
    cell = without_commands(cell)
    quoted = kernel_in(cell)
    defines = macros_in(cell) if quoted is not None else {}
    cell = cell if quoted is None else quoted
    renamed = _renamed(options.inputs)
    apart, _ = unpacked(cell)  # its parameters are what the kernel is bound to
    unit = lift(apart, foreign=True)
    wanted = {p.name for kernel in kernels(unit) for p in kernel.parameters}
    wanted |= {v.bare_name for v in device_variables(unit) if not v.initialised}
    wanted -= _own(cell)  # what an earlier cell left under such a name is not meant
    wanted |= set(_names(options.args))
    reference = _reference(options.ref, namespace, cell)
    for given in sorted(set(renamed) - wanted):
        if not re.search(rf"\b{re.escape(given)}\b", cell) and not _takes(reference, given):
            raise BindingError(
                f"--inputs names `{given}`, which neither the kernel nor the reference takes",
                fix=nearest(given, wanted) or f"choose one of {', '.join(sorted(wanted))}",
            )
    inputs: dict[str, Any] = {}
    for parameter in sorted(wanted | set(renamed)):
        source = renamed.get(parameter, parameter)
        if source in namespace:
            if misspelt.is_value(namespace[source]):
                inputs[parameter] = namespace[source]
        elif parameter in renamed:
            raise BindingError(
                f"no variable named `{source}`",
                fix=nearest(source, namespace) or f"define {source}",
            )
    notes = _by_their_host_names(apart, wanted - set(renamed), namespace, inputs)
    task = Task(
        kernel=cell,
        reference=reference,
        inputs=inputs,
        notes=notes if quoted is None else (_QUOTED, *notes),
        outputs=dict(_output(spec) for spec in options.out or ()),
        inout=tuple(options.inout or ()),
        args=tuple(_names(options.args)),
        rtol=options.rtol,
        atol=options.atol,
        headers=dict(headers or {}),
        defines=defines,
        name=name,
    )
    return compiled_as(task, options, options.file)


def _by_their_host_names(
    cell: str, wanted: set[str], namespace: Mapping[str, Any], inputs: dict[str, Any]
) -> tuple[str, ...]:
    """Adds what the notebook has under the name that a pasted launch passes; a note for each."""
    notes = []
    for note in drop_host_code(cell)[1]:
        if note.kind == "called" and note.name in wanted - inputs.keys():
            value = namespace.get(note.called)
            if misspelt.is_value(value):
                inputs[note.name] = value
                notes.append(note.text)
    return tuple(notes)


def from_words(options: argparse.Namespace, namespace: Mapping[str, Any]) -> Task:
    """The task of a cell without a kernel: what the reference asks for is in the notebook.

    The result gets another name than the reference, which a later run of the cell asks for again.
    """
    if options.ref is None:
        return _of_words(options, namespace)
    reference, renamed = _reference(options.ref, namespace), _renamed(options.inputs)
    if options.name == options.ref:
        raise UsageError(
            f"the result would take the place of the reference `{options.ref}`",
            fix=f"give it another name, or none: it is {options.ref}_kernel then",
        )
    parameters = inspect.signature(reference).parameters
    for name in renamed:
        if name not in parameters:
            raise BindingError(
                f"{options.ref} has no parameter `{name}`",
                fix=nearest(name, parameters) or f"choose one of {', '.join(parameters) or 'none'}",
            )
    known = {name: value for name, value in namespace.items() if misspelt.is_value(value)}
    inputs: dict[str, Any] = {}
    for parameter in parameters.values():
        name = parameter.name
        source = renamed.get(name, name)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise BindingError(
                f"{options.ref} takes any number of arguments, `{parameter}`",
                fix="name each of them: they are the inputs of the kernel",
            )
        if source in known:
            inputs[name] = known[source]
        elif name in renamed or parameter.default is parameter.empty:
            raise BindingError(
                f"no array or number named `{source}`, which {options.ref} asks for",
                fix=nearest(source, known) or f"define {source}, or pass --inputs {name}=...",
            )
    task = Task(
        reference=reference,
        inputs=inputs,
        rtol=options.rtol,
        atol=options.atol,
        name=options.name or f"{options.ref}_kernel",
    )
    return compiled_as(task, options, None)


def _of_words(options: argparse.Namespace, namespace: Mapping[str, Any]) -> Task:
    """The task of words alone; ``--inputs`` names what there is already."""
    inputs = {}
    for name, source in _renamed(options.inputs).items():
        if source not in namespace or not misspelt.is_value(namespace[source]):
            fix = nearest(source, namespace) or f"define {source}"
            raise BindingError(f"no array or number named `{source}`", fix=fix)
        inputs[name] = namespace[source]
    task = Task(inputs=inputs, rtol=options.rtol, atol=options.atol, name=options.name or "kernel")
    return compiled_as(task, options, None)


def examples_in(name: str | None, namespace: Mapping[str, Any]) -> list[Example]:
    """The user's examples, from a list of (inputs by name, output) in the notebook."""
    if name is None:
        return []
    try:
        return [Example.of(inputs, output) for inputs, output in namespace[name]]
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"`{name}` is not a list of examples",
            fix=f'write {name} = [({{"x": [[1, 2]]}}, [3]), ...]: inputs by name, and the output',
        ) from None


def examples_from(path: str | None) -> list[Example]:
    """The user's examples, from a JSON file."""
    if path is None:
        return []
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        return [Example.of(one["inputs"], one["output"]) for one in found]
    except (OSError, KeyError, TypeError, ValueError) as cause:
        raise UsageError(
            f"{path} is not a file of examples",
            fix='write a JSON list of {"inputs": {"x": [[1, 2]]}, "output": [3]}',
        ) from cause


def compiled_as(task: Task, options: argparse.Namespace, file: str | None) -> Task:
    """The task with the command's -I and -D; a kernel's file has its own folder searched first."""
    own = [Path(file).parent] if file else []
    folders = [Path(folder).expanduser() for folder in (*own, *(options.include or ()))]
    defines = dict(_define(word) for word in options.define or ())
    return replace(
        task,
        include=(*(folder.absolute() for folder in folders), *task.include),
        defines={**task.defines, **defines},
    )


def _define(word: str) -> tuple[str, str]:
    name, given, value = word.partition("=")
    return name.strip(), value if given else "1"


def name_of(task: Task) -> str:
    """The task's name, or that of its first kernel."""
    found = kernels(task.text)
    return task.name or (found[0].name if found else "kernel")


def _own(cell: str) -> set[str]:
    """Names that the cell's directives make themselves: scratch buffers, tuned values."""
    try:
        program = parse_program(cell)
    except SourceError:  # it is told when the task is prepared
        return set()
    return {one.name for one in program.scratch} | {one.name for one in program.tunes}


def _reference(name: str | None, namespace: Mapping[str, Any], cell: str = "") -> Any:
    if name is None:
        return None
    function = namespace.get(name)
    if not callable(function):
        if name not in namespace and re.search(rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*{{", cell):
            raise UsageError(
                f"the reference `{name}` is C++ host code of this cell, which is not run",
                fix=f"write it in Python: def {name}(...) takes the inputs by name and returns the "
                "outputs; without --ref the kernel is compared with itself",
            )
        raise misspelt.reference(name, namespace)
    return function


def _takes(reference: Any, name: str) -> bool:
    """Whether a reference may be given that name; of one without a signature nobody knows."""
    if reference is None:
        return False
    try:
        parameters = inspect.signature(reference).parameters
    except ValueError:
        return True
    kinds = [parameter.kind for parameter in parameters.values()]
    return name in parameters or inspect.Parameter.VAR_KEYWORD in kinds


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


def _renamed(text: str | None) -> dict[str, str]:
    pairs = {}
    for part in _names(text):
        name, _, source = part.partition("=")
        pairs[name.strip()] = source.strip() or name.strip()
    return pairs


def _output(spec: str) -> tuple[str, str]:
    name, _, shape = spec.partition(":")
    return name.strip(), shape.strip()
