"""The tutorial kernels by name: in each folder the programs, and their tasks in ``tasks.py``.

Every ``tasks.py`` is what a user would write: ``optiml check tests/tutorials/scans/tasks.py``.
"""

from __future__ import annotations

from pathlib import Path

from optiml_magic import Task
from optiml_magic.commands.tasks import from_file

HERE = Path(__file__).parent


def named(folder: Path) -> dict[str, Task]:
    """Those of a folder, by its name and the kernel's."""
    tasks = from_file(folder / "tasks.py")
    return {f"{folder.name}/{Path(task.kernel).stem}": task for task in tasks}


TASKS: dict[str, Task] = {}
for file in sorted(HERE.glob("*/tasks.py")):
    TASKS |= named(file.parent)
