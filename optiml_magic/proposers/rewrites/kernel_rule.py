"""A rule on the tree of a kernel: cheap sites, and text only for what is tried."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.added_up import added_up
from optiml_magic.kernels.primitives.aligned import aligned
from optiml_magic.kernels.primitives.asked_apart import asked_apart
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, kernels
from optiml_magic.kernels.primitives.boxed import boxed
from optiml_magic.kernels.primitives.copied_parameters import copied_parameters
from optiml_magic.kernels.primitives.dispatched import dispatched, unmet, unverified
from optiml_magic.kernels.primitives.grid_words import grid_in_words
from optiml_magic.kernels.primitives.headed import headed
from optiml_magic.kernels.primitives.in_place import in_place
from optiml_magic.kernels.primitives.left_early import left_early
from optiml_magic.kernels.primitives.lengthwise import lengthwise
from optiml_magic.kernels.primitives.lined import lined
from optiml_magic.kernels.primitives.methods_out import methods_out
from optiml_magic.kernels.primitives.one_axis import one_axis
from optiml_magic.kernels.primitives.onward import onward
from optiml_magic.kernels.primitives.pitched import pitched
from optiml_magic.kernels.primitives.rebased import rebased
from optiml_magic.kernels.primitives.rerolled import rerolled
from optiml_magic.kernels.primitives.rowed import rowed
from optiml_magic.kernels.primitives.scoped import scoped
from optiml_magic.kernels.primitives.single import single
from optiml_magic.kernels.primitives.sized import block_sized
from optiml_magic.kernels.primitives.stepwise import stepwise
from optiml_magic.kernels.primitives.stored_whole import stored_whole
from optiml_magic.kernels.primitives.taken_away import taken_away
from optiml_magic.kernels.primitives.threaded import threaded
from optiml_magic.kernels.primitives.unchained import unchained
from optiml_magic.kernels.primitives.uncoarsened import thread_an_item
from optiml_magic.kernels.primitives.unnamed_tests import unnamed_tests
from optiml_magic.kernels.primitives.unshadowed import unshadowed
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.model.facts import Facts
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.space import Point
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites.all_values import for_all_values
from optiml_magic.proposers.rewrites.idle import idle
from optiml_magic.source.program import Program, parse_program


@dataclass(frozen=True)
class Site:
    """A place where a rule applies: ``apply`` makes the program, its numbers as tuned names.

    ``points`` are values of these, the best by arithmetic first: the program begins with the
    first, and the tuner goes on with the others. An empty one keeps those that the program has.
    ``joined`` are the kernels of the launches behind that it edits as well.
    """

    key: str
    title: str
    apply: Callable[[], Kernel | Refused]
    prior: float
    hypothesis: Hypothesis
    points: tuple[Point, ...] = ({},)
    arithmetic: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()

    def times(self, by: float) -> Site:
        """The same, so many times as likely."""
        return replace(self, prior=round(self.prior * by, 2))


_SHAPES = (
    in_place, methods_out, block_sized, unshadowed, unchained, copied_parameters, unnamed_tests,
    left_early, asked_apart, pitched, stored_whole, stepwise, rerolled, scoped, single, taken_away,
    headed, rebased, lined, one_axis, grid_in_words, onward, thread_an_item,
    threaded, added_up, aligned, rowed, boxed,
)  # fmt: skip


_WRITTEN_OUT = 20_000  # bytes of a kernel that rules have unrolled, from which on it is: ours
_SEEN = 4096  # assignments of tuned names that are looked at: ours


class KernelRule(ABC):
    """A member of the rules that looks at one launched kernel at a time."""

    name: str  # what Action.rewrite of a finding calls it
    teaches: str  # a paragraph: what the change does, and why it is faster
    #: Steps that make the shapes of kernels alike that this rule looks for, where they apply.
    before: tuple[Callable[[Kernel], Kernel | Refused], ...] = ()

    @abstractmethod
    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        """Where it applies, and why not where it nearly does. Raises NotLegal for the rest."""

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        """An idea for each site."""
        facts = view.facts
        for place, written in enumerate(kernels(program, facts)):
            try:
                kernel = self.shaped(written)
                for found in self.sites(kernel):
                    if isinstance(found, Refused):
                        yield Refusal(self.name, found.reason, found.line)
                    else:
                        yield self._idea(written, kernel, found, view, place)
            except NotLegal as reason:
                yield Refusal(self.name, reason.reason, reason.line)
            except Unspelled as reason:
                yield Refusal(self.name, f"a part of it cannot be written anew: {reason}")

    def shaped(self, kernel: Kernel) -> Kernel:
        """A kernel after the steps that come before, of which some are always the first."""
        return kernel.shaped(self._steps)

    @property
    def _steps(self) -> tuple[Callable[[Kernel], Kernel | Refused], ...]:
        return (*_SHAPES, *self.before) if self.before else ()

    def _idea(self, written: Kernel, kernel: Kernel, site: Site, view: View, place: int) -> Idea:
        points = tuple(spelled(kernel, point) for point in site.points)
        first = points[0]
        numbers = ", ".join(f"{name} = {value}" for name, value in first.items())
        return Idea(
            title=f"{site.title}: {numbers}" if numbers else site.title,
            proposer=self.name,
            make=partial(self._make, written, site, first, view, place),
            key=f"{self.name} {kernel.launch.kernel or ''} {site.key}",
            rationale=self.teaches,
            hypothesis=site.hypothesis,
            prior=site.prior,
            arithmetic=tuple(dict.fromkeys((*kernel.arithmetic, *site.arithmetic))),
            move=f"{self.name} {place} {site.key}",
            starts=points,
            launches=(kernel.launch.kernel or kernel.function.name, *site.joined),
        )

    def _make(
        self, written: Kernel, site: Site, point: Point, view: View, place: int
    ) -> str | Refusal:
        again = partial(self._again, site.key, place)
        made = for_all_values(site.apply(), written, view.facts, again)
        if isinstance(made, Refused):
            return Refusal(self.name, made.reason, made.line)
        before, root = (parse_program(s.candidate.text) for s in (view.step, view.begun))
        try:
            chosen = _at(made.program, point) if point else made.program
            beyond = unmet(replace(made, program=chosen), before)
            for turned in _lengthwise(made, written) if beyond is not None else ():
                other = _at(turned.program, point)
                if unmet(replace(turned, program=other), before) is None:
                    chosen, beyond = other, None
                    break
        except SourceError as unfit:
            return Refusal(self.name, unfit.message)
        if beyond is not None:
            return Refusal(self.name, f"`{beyond.condition}` does not hold for the given sizes")
        if (too_few := idle(chosen, written)) is not None:
            return Refusal(self.name, too_few)
        whole = dispatched(chosen, before, root)
        if (beyond := unverified(whole, before, written.facts)) is not None:
            where = "the sizes that programs are verified at"
            return Refusal(self.name, f"`{beyond.condition}` does not hold for {where}")
        return whole.text

    def _again(
        self, key: str, place: int, program: Program, facts: Facts | None
    ) -> Kernel | Refused:
        """What the site with this key makes of the kernel at a place of another program."""
        try:
            sites = self.sites(self.shaped(kernels(program, facts)[place]))
            found = next((s for s in sites if isinstance(s, Site) and s.key == key), None)
        except NotLegal as reason:
            return Refused(reason.reason, reason.line)
        except Unspelled as reason:
            return Refused(f"a part of it cannot be written anew: {reason}")
        return found.apply() if found is not None else Refused("its block's numbers decide on it")


def written_out(kernel: Kernel) -> bool:
    """Whether a kernel is so long that its loops were written out; to read it takes a second."""
    start, end = kernel.function.span
    return end - start > _WRITTEN_OUT


def _at(program: Program, point: Point) -> Program:
    """A program at a point, where tuned names that it leaves open may have to follow.

    Of the values that conditions then allow these have those that are nearest to their own.
    """
    try:
        return program.with_values(point)
    except SourceError:
        own = program.values
        legal = (v for v in islice(program.legal_values(), _SEEN) if point.items() <= v.items())
        near = min(legal, default=None, key=lambda v: sum(abs(v[n] - own.get(n, 0)) for n in v))
        if near is None:
            raise
        return program.with_values(near)


def _lengthwise(made: Kernel, written: Kernel) -> Iterator[Kernel]:
    """What is made of a kernel with fewer blocks along y and z, where there may be too many."""
    with suppress(NotLegal):
        yield from lengthwise(made, written)


def spelled(kernel: Kernel, point: Point) -> Point:
    """A point by the names that primitives give: others where the text has them already.

    A name of its own the rule may mean; one that other launches alone have it does not.
    """
    own = _own_names(kernel)
    return {n if n in own else kernel.fresh(n): value for n, value in point.items()}


def _own_names(kernel: Kernel) -> set[str]:
    """The tuned names that a kernel or its launch is written with."""
    tuned = kernel.program.values.keys()
    if len(kernel.program.launches) < 2:  # macros may say them for it
        return {*tuned}
    start, end = kernel.unit.origin.origin(*(kernel.function.whole or kernel.function.span))
    text = kernel.program.text.encode()[start:end].decode()
    return {*tuned} & {*re.findall(r"\w+", f"{kernel.launch} {text}")}
