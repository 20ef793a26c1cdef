"""Tools, profilers and rules of other packages, found by their entry points.

A package names its members in its metadata, one group for each family; ``docs/extending.md`` shows
how. What cannot be loaded, is no such member, or raises when it is used, is left out with a note
that names it and its package, and stops nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from optiml_magic.devices.base import Device, Job
from optiml_magic.findings import TOOLS, Subject, Tool
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Proposal
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.finding import Finding, RooflineClass
from optiml_magic.model.idea import Idea
from optiml_magic.model.measurement import Measurement, Metric, Missing
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.view import View
from optiml_magic.profilers.base import AddedProfiler
from optiml_magic.source.program import Program

if TYPE_CHECKING:
    from optiml_magic.proposers.rewrites.base import Rewrite

GROUPS = ("optiml_magic.tools", "optiml_magic.profilers", "optiml_magic.rules")
M = TypeVar("M")


@dataclass(frozen=True)
class Plugins:
    """What other packages add. ``names`` are those in use, with the versions of their packages."""

    tools: tuple[Tool, ...] = ()
    profilers: tuple[AddedProfiler, ...] = ()
    rules: tuple[Rewrite, ...] = ()
    names: tuple[str, ...] = ()
    _notes: dict[str, None] = field(default_factory=dict, compare=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out so far and why; what breaks in use is added when it does."""
        return tuple(self._notes)


def load() -> Plugins:
    """The plug-ins that are installed now, in the order of their names."""
    notes: dict[str, None] = {}
    names: list[str] = []
    tools = _family(
        GROUPS[0], ("classes", "metrics", "diagnose"), lambda: TOOLS, _GuardedTool, notes, names
    )
    profilers = _family(GROUPS[1], ("measure",), tuple, _GuardedProfiler, notes, names)
    rules = _family(GROUPS[2], ("propose",), _rules, _GuardedRule, notes, names)
    return Plugins(tuple(tools), tuple(profilers), tuple(rules), tuple(names), notes)


def _rules() -> Sequence[Rewrite]:
    # Half of what a check would load, which needs none.
    from optiml_magic.proposers.rewrites import REWRITES

    return REWRITES


class _Guard:
    """Says by name what a plug-in does wrong."""

    def __init__(self, entry: EntryPoint, notes: dict[str, None]) -> None:
        package = entry.dist.name if entry.dist else "no package"
        self.place = f"plug-in `{entry.name}` of {package} ({entry.group})"
        version = entry.dist.version if entry.dist else "0"
        self.version = f"{entry.name} of {package} {version}"
        self._notes = notes

    def left_out(self, why: object) -> None:
        said = f"{type(why).__name__}: {why}" if isinstance(why, BaseException) else str(why)
        self._notes[f"{self.place} is left out: {' '.join(said.split())[:300]}"] = None

    def kept(self, make: Callable[[], Iterator[Any]], flaw: Callable[[Any], str]) -> list[Any]:
        """What a plug-in gave, as far as it has no flaw; nothing where it raised."""
        try:
            found = list(make())
        except (Exception, SystemExit) as why:  # noqa: BLE001  # foreign code
            self.left_out(why)
            return []
        flaws = [flaw(one) for one in found]
        for said in filter(None, flaws):
            self.left_out(said)
        return [one for one, said in zip(found, flaws, strict=True) if not said]


class _GuardedTool:
    def __init__(self, tool: Any, guard: _Guard) -> None:
        self.name: str = tool.name
        self.classes: frozenset[RooflineClass] = frozenset(tool.classes)
        self.metrics: tuple[str, ...] = tuple(tool.metrics)
        self._tool = tool
        self._guard = guard

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        lines = len(subject.program.text.splitlines())
        yield from self._guard.kept(
            lambda: self._tool.diagnose(subject),
            lambda found: _unlike(Finding, found) or _flaw(found, self.name, lines),
        )


class _GuardedRule:
    def __init__(self, rule: Any, guard: _Guard) -> None:
        self.name: str = rule.name
        self._rule = rule
        self._guard = guard

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        for found in self._guard.kept(
            lambda: self._rule.propose(program, view),
            lambda found: _unlike(Refusal, found) if isinstance(found, Refusal) else _odd(found),
        ):
            if isinstance(found, Refusal) or found.text is not None:
                yield found
            else:
                yield replace(found, make=partial(self._made, found))

    def _made(self, idea: Idea) -> str | Refusal:
        """The text, or a refusal in its place where the rule breaks."""
        try:
            made: Any = idea.make()
        except (Exception, SystemExit) as why:  # noqa: BLE001  # foreign code
            self._guard.left_out(why)
        else:
            flaw = "" if isinstance(made, str) else _unlike(Refusal, made)
            if not flaw:
                return made  # type: ignore[no-any-return]
            self._guard.left_out(flaw)
        return Refusal.failed(self.name)


class _GuardedProfiler:
    def __init__(self, profiler: Any, guard: _Guard) -> None:
        self.name: str = profiler.name
        self._profiler = profiler
        self._guard = guard

    def measure(
        self, device: Device, build: Build, job: Job, measured: Measurement
    ) -> Sequence[Metric] | Missing:
        found: Any = Missing(self.name, f"{self._guard.place} failed")

        def asked() -> Iterator[Any]:
            nonlocal found
            answer = self._profiler.measure(device, build, job, measured)
            found = answer if isinstance(answer, Missing) else None
            yield from () if found else answer

        metrics = self._guard.kept(asked, lambda metric: _unlike(Metric, metric))
        return found or metrics


def _unlike(kind: type[M], one: object) -> str:
    """Why something is no such noun, in its fields too; the codec knows what they hold."""
    if not isinstance(one, kind):
        return f"it gave a {type(one).__name__} where a {kind.__name__} is wanted"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fields that are about to be refused
            whole = from_json(kind, to_json(kind, one)) == one
    except ValueError as why:
        return f"its {kind.__name__}: {why}"
    return "" if whole else f"its {kind.__name__} has fields of another kind"


def _odd(idea: object) -> str:
    """Why something is no idea that can be ranked and tried."""
    if not isinstance(idea, Idea):
        return _unlike(Idea, idea)
    if not idea.key or not isinstance(idea.key, str) or not callable(idea.make):
        return "its Idea has no key or no make"
    flaw = _unlike(Proposal, idea.proposal(idea.text or "")).replace("Proposal", "Idea")
    return flaw or ("" if 0 < idea.prior <= 1 else f"its prior is {idea.prior}")


def _flaw(finding: Finding, tool: str, lines: int) -> str:
    """Why a finding of the right kind cannot be ranked or shown."""
    low, high = finding.gain
    if finding.tool != tool:
        return f"it gave a finding of `{finding.tool}`"
    if not finding.evidence:
        return "its finding has no evidence"
    if not all(0 <= evidence.line <= lines for evidence in finding.evidence):
        return f"its finding is about line {finding.line} of {lines}"
    return "" if 0 < low <= high else f"its finding gains from {low} to {high}"


def _family(
    group: str,
    wanted: Sequence[str],
    own: Callable[[], Sequence[Any]],
    guarded: Callable[[Any, _Guard], M],
    notes: dict[str, None],
    names: list[str],
) -> Iterator[M]:
    entries = sorted(entry_points(group=group), key=lambda entry: entry.name)
    taken = {member.name for member in own()} if entries else set()
    for entry in entries:
        guard = _Guard(entry, notes)
        try:
            found = entry.load()
            member = found() if isinstance(found, type) else found
            lacking = [name for name in ("name", *wanted) if not hasattr(member, name)]
            if lacking:
                guard.left_out(f"it has no {', '.join(lacking)}")
                continue
            made = guarded(member, guard)
        except (Exception, SystemExit) as why:  # noqa: BLE001  # see above; some exit when imported
            guard.left_out(why)
            continue
        name: Any = member.name
        if not isinstance(name, str) or not name:
            guard.left_out(f"its name is {name!r}")
        elif name in taken:
            guard.left_out(f"there is a `{name}` already")
        else:
            taken.add(name)
            names.append(guard.version)
            yield made
