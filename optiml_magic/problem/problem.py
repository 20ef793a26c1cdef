"""A task made concrete: the program, its interface, and cases with their answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from optiml_magic import binding
from optiml_magic.devices.base import Case
from optiml_magic.errors import SourceError, UsageError
from optiml_magic.kernels.prepared import explained, with_launches
from optiml_magic.model.task import Task
from optiml_magic.problem import inputs, sizes
from optiml_magic.problem.card import cupy_on
from optiml_magic.problem.cost import SLOW, affordable, foreseen
from optiml_magic.problem.instances import Instance, Maker
from optiml_magic.problem.libraries import Home
from optiml_magic.problem.outputs import drawn_as_allocated, sized_by_numbers, with_stored_shapes
from optiml_magic.problem.reference import Answer
from optiml_magic.problem.references import References
from optiml_magic.problem.scales import Maps
from optiml_magic.source.notes import Note, taken_out
from optiml_magic.source.program import Program

_KEPT_BACK = frozenset({"literal", "called", "allocated", "filled"})  # told where they are used


@dataclass(frozen=True)
class Problem:
    """What an evaluator needs to know of a task. ``notes`` are told to the user with the result.

    The first instance is the user's own, and the one that is measured. ``dropped`` has the notes on
    host functions that were taken out of the text, by their names; ``absent`` are headers of the
    text's own that the task lacks. ``references`` answers where the
    task has a reference; ``verified`` are smaller sizes that it is verified at, if there are any.
    """

    task: Task
    name: str
    program: Program
    launch: Literal["given", "inferred"]
    interface: binding.Interface
    instances: tuple[Instance, ...]
    oracle: str
    notes: tuple[str, ...]
    homes: Mapping[str, Home] = field(default_factory=dict)
    dropped: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    references: References | None = None
    verified: sizes.Sizes = field(default_factory=dict)

    @property
    def sizing(self) -> sizes.Sizing | None:
        """The sizes that can be changed, up to those that it is verified at; None without any."""
        first = self.instances[0].values
        return sizes.sizing(self.task, self.program, self.interface.scalars, first, self.verified)

    @property
    def first(self) -> Instance:
        """The first set of inputs that candidates are verified on."""
        return next(instance for instance in self.instances if instance.verified)

    def instance(
        self, values: Mapping[str, Any], condition: str, key: str, maps: Maps | None = None
    ) -> Instance:
        """The case for ``values`` after their ``maps``, and what the reference wants there.

        With ``maps``, even empty ones, the arrays are those of a case that a device has. Raises
        what the reference raises.
        """
        maker = Maker(self.task, self.program, self.interface, self.references)
        return maker.instance(values, condition, key, maps)[0]

    @property
    def is_slow_as_measured(self) -> bool:
        """Whether a call of the reference at the sizes of the task would take over a second.

        Where it is asked at smaller ones alone, some of those are tried for it.
        """
        if self.references is None or self.references.by_numpy > SLOW or not self.verified:
            return self.references is not None and self.references.by_numpy > SLOW
        first = self.instances[0].values
        whole = sizes.sizing(self.task, self.program, self.interface.scalars, first)
        return whole is not None and foreseen(self.references, whole, first) > SLOW

    def unverified(self, values: Mapping[str, Any], sizing: sizes.Sizing, named: str) -> Instance:
        """The case for ``values`` that are only measured; raises what the reference raises."""
        maker = Maker(self.task, self.program, self.interface, self.references)
        return maker.unverified(values, sizing, named)


def prepare(
    task: Task,
    *,
    seeds: int,
    seconds: float = math.inf,
    device: str = "",
    made: Callable[[Case], None] = lambda _: None,
    searched: bool = False,
) -> Problem:
    """Everything about a task that needs no compiler and no device.

    Calls of its reference take about ``seconds`` at most: the sizes, and how many of ``seeds``, are
    chosen so. It may be computed on the card ``device``, where that is one. ``made`` is called with
    the case of each set of inputs, while there may be more to come. ``searched`` is that of
    ``with_launches``.

    Raises a UsageError where the kernel, a directive, an input or the reference does not fit.
    """
    if not task.kernel and task.reference is not None:
        raise UsageError(
            "the task has a reference and no kernel", fix="make one from it: optiml synthesize"
        )
    prepared = with_launches(task.text, task.constants, task.lacks, searched=searched)
    program = _with_arguments(prepared.program, task)
    for tune in program.tunes:
        if tune.name in task.defines:
            raise UsageError(
                f"`{tune.name}` is tuned, and defined from outside as well",
                fix=f"remove -D {tune.name}; the tune directive gives the value",
                line=tune.line,
            )
    _demand_sizes(task)
    border = inputs.at_border(task)
    literals, notes = _literals(border, prepared.notes)
    arrays, told = drawn_as_allocated(
        program, border.task, {**literals, **border.values}, prepared.notes
    )
    literals, notes = {**literals, **arrays}, [*notes, *told]
    task = inputs.with_values(border.task, literals) if literals else border.task
    given = {**literals, **border.values}
    with explained(prepared.notes):
        sized = sized_by_numbers(task, given, prepared.notes)
        values = _with_sizes(program, task, given, sized)
        found = binding.interface(program, task, values)
        binding.check_values(found, values, sized)
    task, told = with_stored_shapes(task, program, found, values, prepared.notes)
    notes += told
    smaller: Mapping[str, int] = sizes.kept(task.sizes, task.verify_sizes)
    references, why = None, ""
    if task.reference is not None:
        written = [buffer.name for buffer in found.named("output", "inout")]
        references = References(task.reference, written, border.homes, cupy_on(device))
        sizing = sizes.sizing(task, program, found.scalars, values, smaller)
        chosen, why = affordable(references, sizing, values, seconds)
        smaller = smaller or chosen
    maker = Maker(task, program, found, references)
    sizing = sizes.sizing(task, program, found.scalars, values, smaller)
    instances = []
    if smaller and task.verify_sizes and sizes.much_larger(sizing, smaller, task.verify_sizes):
        smaller = task.verify_sizes
        sizing = sizes.sizing(task, program, found.scalars, values, smaller)
    if smaller:
        assert sizing is not None
        instances.append(maker.unverified(values, sizing))
        made(instances[-1].case)
    wanted = range(len(instances), len(instances) + seeds)
    unread = [buffer.name for buffer in found.named("output")]
    try:
        each = partial(_drawn, task, program, sizing, values, smaller, unread)
        verified = _verified(maker, each, wanted, seconds, made)
    except UsageError as failed:
        if not task.verify_sizes or smaller == task.verify_sizes:
            raise
        notes.append(
            f"not verified at {sizes.spelled(smaller)}, as it is measured: {failed.message}"
        )
        smaller = task.verify_sizes
        sizing = sizes.sizing(task, program, found.scalars, values, smaller)
        each = partial(_drawn, task, program, sizing, values, smaller, unread)
        verified = _verified(maker, each, wanted, seconds, made)
    if smaller:
        kept = sorted(n for n, size in task.verify_sizes.items() if smaller.get(n) != size)
        small = f" ({', '.join(kept)} as measured, which is small)" if kept else ""
        at = f"programs are verified at {sizes.spelled(smaller)}{small} and below"
        notes.append(f"{at}; at the sizes of the task they are only measured{why}")
    if len(verified) < seeds and references is not None:
        takes = f"the reference takes {references.seconds:.2g} s"
        notes.append(f"seeds: {len(verified)} of {seeds}, {takes}")
    wide = all(answer is None or answer.wide for _, answer in verified)
    instances += [instance for instance, _ in verified]
    oracle = "the input kernel itself"
    if task.reference is not None:
        name = task.oracle or getattr(task.reference, "__name__", "the reference")
        oracle = f"{name} in {'float64' if wide else 'the dtypes of the inputs'}"
    _, kernel = binding.launched(program, task.defines)[0]
    dropped, absent = taken_out(prepared.notes)
    return Problem(
        task,
        task.name or kernel.name,
        program,
        prepared.launch,
        found,
        tuple(instances),
        oracle,
        tuple(notes),
        border.homes,
        dropped,
        absent,
        references,
        smaller,
    )


def _verified(
    maker: Maker,
    draw: Callable[[int], Mapping[str, Any]],
    seeds: range,
    seconds: float,
    made: Callable[[Case], None],
) -> list[tuple[Instance, Answer | None]]:
    """An instance for each seed with the answer to it; fewer, and one at least, in ``seconds``."""
    found: list[tuple[Instance, Answer | None]] = []
    references, until = maker.references, time.monotonic() + seconds
    for seed in seeds:
        lasting = references.seconds if references else 0.0
        if found and time.monotonic() + lasting > until:
            break
        again = not found and 2 * lasting <= seconds
        values = draw(seed)
        instance, answer = maker.instance(values, f"seed {seed}", f"seed-{seed}", twice=again)
        found.append((replace(instance, seed=seed), answer))
        made(instance.case)
        if references is not None and answer is not None:
            references.seconds = answer.seconds
            if answer.seconds > SLOW:
                references.try_card(maker.asked(values), "these sizes")
    return found


def _drawn(
    task: Task,
    program: Program,
    sizing: sizes.Sizing | None,
    own: Mapping[str, Any],
    smaller: sizes.Sizes,
    unread: Collection[str],
    seed: int,
) -> Mapping[str, Any]:
    """The inputs for a seed; ``own`` are those of seed 0 at the sizes of the task."""
    if not smaller:
        if not seed:
            return own
        return sizes.with_sizes(program, inputs.draw(task, seed, unread))
    assert sizing is not None
    drawn = sizing.draw(smaller, seed)
    if task.verify_sizes and smaller != task.verify_sizes:
        sizes.check_required(program, drawn)
    return drawn


def _with_sizes(
    program: Program, task: Task, values: Mapping[str, Any], made: Collection[str]
) -> dict[str, Any]:
    """The values with the sizes of arrays; one that is missing is reported at its kernel."""
    try:
        return sizes.with_sizes(program, values)
    except SourceError:
        found = binding.interface(program, task, values)
        sized = {directive.name for directive in program.sizes}
        scalars = tuple(name for name in found.scalars if name not in sized)
        binding.check_values(replace(found, scalars=scalars), values, made)
        raise


def _demand_sizes(task: Task) -> None:
    """Whether inputs can be drawn at the sizes where the task is verified; else a UsageError."""
    unknown = sorted(set(task.verify_sizes) - set(task.sizes))
    if task.verify_sizes and (not callable(task.inputs) or unknown):
        what = (
            f"`{unknown[0]}` is not a size of the task"
            if unknown
            else "the inputs are given arrays"
        )
        raise UsageError(
            f"other sizes cannot be drawn: {what}",
            fix="make inputs a function inputs(rng, **sizes), and name its sizes in `sizes`",
        )


def _literals(
    border: inputs.Border, found_notes: Sequence[Note]
) -> tuple[dict[str, Any], list[str]]:
    """The numbers that launches of the text pass, where the task gives no others, and the notes."""
    given = border.values.keys() | border.task.constants.keys()
    found = {n.name: n.value for n in found_notes if n.kind == "literal" and n.name not in given}
    notes = [
        n.text
        for n in found_notes
        if n.kind not in _KEPT_BACK or (n.kind == "literal" and n.name in found)
    ]
    return found, [*border.task.notes, *notes]


def _with_arguments(program: Program, task: Task) -> Program:
    """``task.args`` written into the one launch that lacks them."""
    if not task.args:
        return program
    (launch, *others) = program.launches
    if others or launch.args is not None:
        raise UsageError(
            "positional arguments need a program with one launch and no args(...) of its own",
            fix="write args(...) into the launch directives",
        )
    text = f"{launch} args({', '.join(task.args)})"
    return program.without(launch).with_directive(text)
