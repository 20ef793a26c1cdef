"""What one process of ncu is asked for: metrics of a launch, of its lines, NVIDIA's rules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from optiml_magic.model.measurement import Missing
from optiml_magic.model.vocabulary import VOCABULARY
from optiml_magic.profilers.report import parts

_GIVEN = ("launch__", "sm__maximum_warps_")  # in every report, and not to be asked for
_SECTION = ("--section", "SourceCounters")
_RULES = ("--set", "detailed")
_PATCHED = "__sass_"  # in the names of metrics that are counted in added code
BY_LINE = "lines"

# How much is asked of ncu, which replays a launch until it has it all: the brief metrics; all that
# tools read, and figures by line; these and NVIDIA's rules.
Depth = Literal["brief", "lines", "rules"]


@dataclass
class Manners:
    """How the ncu here wants to be asked on a device; learned once a process."""

    unknown: set[str] = field(default_factory=set)  # metrics, on that chip
    by_section: bool = False  # the figures by instruction


@dataclass(frozen=True)
class Asked:
    """The metrics of a launch and of its instructions that one process of ncu is to collect."""

    metrics: tuple[str, ...]
    by_line: tuple[str, ...]
    manners: Manners
    sections: tuple[str, ...] = ()
    lost: tuple[Missing, ...] = ()  # what was given up

    @property
    def with_rules(self) -> Asked:
        """NVIDIA's rules alone; with so many passes the L1's counters are off by 1 %, so apart."""
        return replace(self, metrics=(), by_line=(), sections=_RULES)

    @property
    def patches(self) -> bool:
        """Whether ncu adds code to the kernels, as the source counters among the rules do."""
        return bool(self.by_line or self.sections)

    def without_lines(self, seconds: float) -> Asked:
        """Without all that code is added for: it took longer than so many seconds."""
        late = f"ncu did not have them of one run within {seconds:g} s"
        metrics = [name for name in self.metrics if _PATCHED not in name]
        lost = [Missing(name, late) for name in self.metrics if _PATCHED in name]
        lines = Missing(BY_LINE, f"no figures by line: {late}")
        return replace(self, metrics=tuple(metrics), by_line=(), lost=(lines, *lost))

    @property
    def collected(self) -> list[str]:
        """What is read of a report; ratios follow from two others."""
        weights = [VOCABULARY[n].weight for n in self.metrics if n in VOCABULARY]
        names = dict.fromkeys((*self.metrics, *filter(of_ncu, weights), *self.by_line))
        names.update(dict.fromkeys(part for n in self.metrics for part in parts(n)))
        return [n for n in names if n not in self.manners.unknown and not parts(n)]

    @property
    def arguments(self) -> list[str]:
        """Those of ncu's command line."""
        by_section = self.manners.by_section and bool(self.by_line)
        names = [n for n in self.collected if not n.startswith(_GIVEN)]
        if by_section:
            names = [n for n in names if n not in self.by_line]
        by_line = _SECTION if by_section else ()
        metrics = ("--metrics", ",".join(names)) if names else ()
        return [*metrics, *by_line, *self.sections]


def of_ncu(name: str) -> bool:
    """Whether to ask ncu for it: a name that is not in the vocabulary is taken for one of ncu's."""
    entry = VOCABULARY.get(name)
    return entry is None or ("ncu" in entry.sources and name != "flop_count.sum")
