"""Kernels that newcomers write, by kind: each function draws one, race-free and in bounds."""

from __future__ import annotations

from . import (
    accumulated,
    again,
    banks,
    brought,
    chains,
    columns,
    counts,
    maps,
    moments,
    neighbours,
    owned,
    pairs,
    pixels,
    planes,
    rows,
    several,
    shuffled,
    stencils,
    tables,
    tiles,
)

FAMILIES = {
    "maps": (*maps.FAMILY, *neighbours.FAMILY),
    "rows": (*rows.FAMILY, *again.FAMILY),
    "pairs": pairs.FAMILY,
    "planes": planes.FAMILY,
    "columns": columns.FAMILY,
    "tiles": (*tiles.FAMILY, *shuffled.FAMILY, *banks.FAMILY),
    "counts": counts.FAMILY,
    "several": several.FAMILY,
    "accumulated": accumulated.FAMILY,
    "owned": owned.FAMILY,
    "chains": chains.FAMILY,
    "moments": moments.FAMILY,
    "stencils": (*stencils.FAMILY, *pixels.FAMILY),
    "tables": tables.FAMILY,
    "brought": brought.FAMILY,
}
