"""Micro-profiling tools, one file each; the table below is the family."""

from __future__ import annotations

from optiml_magic.findings.bank_conflicts import BankConflicts
from optiml_magic.findings.base import Tool, diagnose, wanted
from optiml_magic.findings.low_work import LowWorkPerThread
from optiml_magic.findings.occupancy_limiter import OccupancyLimiter
from optiml_magic.findings.subject import Subject
from optiml_magic.findings.uncoalesced import UncoalescedAccess

TOOLS: tuple[Tool, ...] = (
    UncoalescedAccess(),
    BankConflicts(),
    OccupancyLimiter(),
    LowWorkPerThread(),
)

__all__ = ["TOOLS", "Subject", "Tool", "diagnose", "wanted"]
