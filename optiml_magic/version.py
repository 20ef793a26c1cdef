"""The version of this package; light, so that ``optiml --version`` answers at once."""

from __future__ import annotations

from importlib import metadata


def package_version() -> str:
    """Of this package, where it is installed."""
    try:
        return metadata.version("optiml-magic")
    except metadata.PackageNotFoundError:
        return "(not installed)"
