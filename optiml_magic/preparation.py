"""From a program's text to something that can be run: parsed, compiled, bound to its instances."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from optiml_magic import binding
from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.compilers.pool import Request
from optiml_magic.errors import RequirementError, SourceError, UsageError, nearest
from optiml_magic.kernels.exits import early_returns
from optiml_magic.kernels.unit import lift_program
from optiml_magic.model.build import Build, CompileFailure, Diagnostic
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import Instance, Problem
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.program import Program, parse_program
from optiml_magic.timings import Timings
from optiml_magic.verifiers.branches import only_where
from optiml_magic.verifiers.compiled import Compiled
from optiml_magic.verifiers.identity import identity
from optiml_magic.verifiers.trials import Trials


@dataclass(frozen=True)
class Bound:
    """A compiled program, and the interface that its launches are planned for."""

    program: Program
    interface: binding.Interface
    build: Build
    chip: Chip

    def plan(self, values: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> LaunchPlan:
        """Its launches on these values; UsageError where it does not fit."""
        return binding.plan(self.program, self.interface, self.build, values, shapes, self.chip)

    def running(
        self, values: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
    ) -> tuple[LaunchDirective, ...]:
        """The directive behind each launch of that plan."""
        return binding.planned(self.program, self.interface, values, shapes, self.chip)


def compiled(
    program: Program,
    interface: binding.Interface,
    compiler: Compiler,
    options: CompileOptions,
    chip: Chip,
) -> Bound | CompileFailure | UsageError:
    """The machine code of a program whose launches bind to ``interface``.

    A UsageError is what a launch or a struct of the program says that does not fit the interface;
    one that is raised is the compiler's own, of an option.
    """
    try:
        source, names = _compilable(program, interface)
    except UsageError as unfit:
        return unfit
    build = compiler.compile(source, names, chip, options)
    if isinstance(build, CompileFailure):
        return binding.misfit(program, interface, build) or build
    # Of the text that is compiled, whose lines the compiler counts as those of the program's.
    leaves = early_returns(lift_program(program, interface.defines))
    return Bound(program, interface, replace(build, early_returns=leaves), chip)


def _runnable(bound: Bound) -> Compiled:
    return Compiled(
        bound.program,
        bound.build,
        lambda i: bound.plan(i.values, i.shapes),
        bound.running,
        lambda program: _runnable(replace(bound, program=program)),
    )


def _compilable(program: Program, interface: binding.Interface) -> tuple[str, tuple[str, ...]]:
    """The text and the names that the compiler gets; UsageError where a launch does not fit."""
    names = binding.name_expressions(program, interface)
    return binding.checked_text(program, interface), names


@dataclass(frozen=True)
class Prepared:
    """A program with its plan for every instance: the given sizes, then those learned."""

    program: Compiled
    plans: tuple[tuple[Instance, LaunchPlan], ...]
    identity: str
    notes: tuple[str, ...] = ()
    only_where: tuple[str, ...] = ()  # it requires of the sizes, and the input kernel does not

    @property
    def build(self) -> Build:
        """The machine code."""
        return self.program.build

    @property
    def verified(self) -> tuple[tuple[Instance, LaunchPlan], ...]:
        """Those whose outputs are compared."""
        return tuple((instance, plan) for instance, plan in self.plans if instance.verified)


class Preparation:
    """Prepares the programs of one problem for one chip."""

    def __init__(
        self,
        problem: Problem,
        compiler: Compiler,
        options: CompileOptions,
        chip: Chip,
        trials: Trials,
        timings: Timings,
    ) -> None:
        self._timings = timings
        self._problem = problem
        self._compiler = compiler
        self._options = options
        self._chip = chip
        self._trials = trials

    def request(self, text: str) -> Request | None:
        """What the compiler will be asked for this program; None where it does not get so far."""
        try:
            source, names = _compilable(parse_program(text), self._problem.interface)
        except UsageError:
            return None  # it is said when its turn comes
        return source, names, self._chip, self._options

    def __call__(self, text: str, instances: Sequence[Instance]) -> Prepared | Verdict:
        """Parse, compile and bind; a program of the search that does not fit is only invalid."""
        try:
            program = parse_program(text)
            if program.inits != self._problem.program.inits:
                raise SourceError(
                    "what the outputs hold before the launch belongs to the task",
                    fix="keep the init directives of the input kernel",
                )
        except UsageError as unfit:
            return _invalid(unfit)
        interface, chip = self._problem.interface, self._chip
        with self._timings.stage("compile"):
            bound = compiled(program, interface, self._compiler, self._options, chip)
        if isinstance(bound, UsageError):
            return _invalid(bound)
        if isinstance(bound, CompileFailure):
            return self._refused(bound, text)
        runnable = _runnable(bound)
        try:
            given, unfit_for = _planned(runnable, instances)
            learned, skipped = self._trials.plans(runnable)
            verified = [i for i, _ in (*given, *learned) if i.verified]
            sides, notes = self._trials.sides(runnable, verified)
            if unfit_for is not None and not any(i.verified for i, _ in (*given, *sides)):
                raise unfit_for
        except UsageError as unfit:
            return _invalid(unfit)
        if unfit_for is not None:
            notes = (f"{unfit_for.message} to verify at: it was verified at others", *notes)
        if skipped:
            notes = (f"its `require` leaves {skipped} other sets of inputs out", *notes)
        # How many sides there was time for must not make one program two.
        same = identity(self._problem, runnable, [plan for _, plan in (*given, *learned)])
        narrower = only_where(program, self._problem.program)
        return Prepared(runnable, (*given, *learned, *sides), same, notes, narrower)

    def _refused(self, failure: CompileFailure, text: str) -> Verdict:
        first = telling(failure.errors, self._problem.absent)
        more = f" (and {len(failure.errors) - 1} more)" if len(failure.errors) > 1 else ""
        summary, fix = (
            f"{first.message}{more}",
            advice(first, self._problem.dropped, self._problem.absent, text),
        )
        return Verdict(Outcome.COMPILE_ERROR, summary, line=first.line, fix=fix)


def telling(errors: Sequence[Diagnostic], absent: Sequence[str]) -> Diagnostic:
    """The error that says most: without a header, that of a name which it may have declared."""
    undefined = (error for error in errors if error.undefined)
    return next(undefined, errors[0]) if absent else errors[0]


def advice(
    error: Diagnostic, dropped: Mapping[str, str], absent: Sequence[str], text: str = ""
) -> str:
    """Names that were taken for the host's want a mark; otherwise the compiler says what it met.

    A name that ``text`` has in another spelling may be meant.
    """
    taken = dropped.get(error.undefined)
    if taken:
        return f"{taken}: mark it __device__"
    if error.undefined and absent:
        named = " or ".join(f"`{name}`" for name in absent)
        return (
            f"it may be of {named}, which the task lacks: pass the folder with -I, or keep the "
            f"text with %%optiml header {absent[0]}"
        )
    words = {*re.findall(r"[A-Za-z_]\w+", text)} - {error.undefined}
    if error.undefined and (close := nearest(error.undefined, words, surely=True)):
        return close
    if error.message.startswith(("cannot open source file", "#include of a file outside")):
        spelled = re.search(r'"([^"]+)"', error.message)
        name = spelled[1] if spelled else "NAME"
        return f"pass its folder with -I, or keep its text with %%optiml header {name}"
    if "not allowed in JIT mode" in error.message:  # what Thrust and other headers for hosts do
        return "leave out headers for the host, as Thrust's; or pass --compiler nvcc"
    if "not supported when compiling with NVRTC" in error.message:  # <cub/cub.cuh> says so
        return "include what it uses, as <cub/block/block_reduce.cuh>, or pass --compiler nvcc"
    return "fix this line" if error.line else "fix the text of the kernel"


def _planned(
    runnable: Compiled, instances: Sequence[Instance]
) -> tuple[list[tuple[Instance, LaunchPlan]], RequirementError | None]:
    """The launches on these inputs, and why some of those to verify on are left out.

    A program may be for the sizes that the task is measured at: others with these are beside them.
    """
    found, left = list[tuple[Instance, LaunchPlan]](), None
    for instance in instances:
        try:
            found.append((instance, runnable.plan(instance)))
        except RequirementError as unfit:
            if not instance.verified or all(i.verified for i in instances):
                raise
            left = unfit
    return found, left


def _invalid(unfit: UsageError) -> Verdict:
    return Verdict(Outcome.INVALID, unfit.message, line=unfit.line or 0, fix=unfit.fix)
