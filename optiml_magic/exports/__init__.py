"""A program as a file that stands alone; the end of its name says in which format."""

from __future__ import annotations

from pathlib import Path

from optiml_magic import files
from optiml_magic.errors import UsageError
from optiml_magic.exports.base import Export, Exportable
from optiml_magic.exports.cuda_file import CudaFileExport
from optiml_magic.exports.cupy_module import CupyModuleExport
from optiml_magic.exports.torch_op import TorchOpExport

__all__ = ["FORMATS", "Export", "Exportable", "target", "write"]

FORMATS: tuple[Export, ...] = (CudaFileExport(), CupyModuleExport(), TorchOpExport())


def target(path: str | Path, *, overwrite: bool = False) -> tuple[Path, Export]:
    """Where an export goes and in which format; UsageError where it cannot go there."""
    place = Path(path).expanduser()
    fitting = [form for form in FORMATS if place.name.endswith(form.suffix)]
    found = max(fitting, key=lambda form: len(form.suffix), default=None)
    if found is None:
        what = f"`{place.suffix}` is not a format" if place.suffix else f"{path} has no suffix"
        forms = ", or ".join(f"{form.suffix} ({form.form})" for form in FORMATS)
        raise UsageError(f"{what} of an export", fix=f"end the name with {forms}")
    if not place.absolute().parent.is_dir():
        raise UsageError(f"no folder for {path}", fix="make the folder first")
    if place.is_dir() or (place.exists() and not overwrite):
        fix = "choose another name" if place.is_dir() else "pass overwrite=True, or --force"
        raise UsageError(f"{path} exists", fix=fix)
    return place, found


def write(what: Exportable, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write ``what`` to ``path``; nothing is written where the format cannot hold it."""
    place, form = target(path, overwrite=overwrite)
    text = form.render(what)
    files.write(place, text)
    return place
