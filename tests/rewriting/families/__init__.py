"""Kernels that newcomers write, by kind: each function draws one, race-free and in bounds."""

from __future__ import annotations

from . import (
    chains,
    columns,
    counts,
    maps,
    neighbours,
    planes,
    rows,
    several,
    shuffled,
    tiles,
)

FAMILIES = {
    "maps": (*maps.FAMILY, *neighbours.FAMILY),
    "rows": rows.FAMILY,
    "planes": planes.FAMILY,
    "columns": columns.FAMILY,
    "tiles": (*tiles.FAMILY, *shuffled.FAMILY),
    "counts": counts.FAMILY,
    "several": several.FAMILY,
    "chains": chains.FAMILY,
}
