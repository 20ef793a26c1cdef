from __future__ import annotations

from pathlib import Path

import optiml_magic

KERNELS = Path(optiml_magic.__file__).parent / "testing" / "kernels"
KERNEL_TEXTS = [path.read_text() for path in sorted(KERNELS.glob("*.cu"))]
