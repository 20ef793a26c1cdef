"""Kernels that newcomers write, by kind: each function draws one, race-free and in bounds."""

from __future__ import annotations

from . import maps, planes, rows, several, tiles

FAMILIES = {
    "maps": maps.FAMILY,
    "rows": rows.FAMILY,
    "planes": planes.FAMILY,
    "tiles": tiles.FAMILY,
    "several": several.FAMILY,
}
