"""Memory instructions as things that are counted, and predicated ones with lanes switched off."""

from __future__ import annotations

from dataclasses import dataclass, field

from optiml_magic.model.counters import Access, Space
from optiml_magic.ptx.nouns import Instruction


@dataclass(frozen=True)
class Site:
    """A memory instruction; one record counts it in each space that it may meet."""

    line: int
    access: Access
    width: int  # bytes per lane
    spaces: tuple[Space, ...]
    counted: bool = True  # constants and inlined arguments are not
    swaps: bool = False


@dataclass
class Tables:
    """What the instructions of a kernel allocate while they are lowered."""

    sites: list[Site] = field(default_factory=list)
    idle: list[Instruction] = field(default_factory=list)
    prints: bool = False  # printf is called
    records: int = 0  # of the sites so far

    def site(self, site: Site) -> int:
        """The index of the first record of a new site."""
        self.sites.append(site)
        self.records += len(site.spaces)
        return self.records - len(site.spaces)
