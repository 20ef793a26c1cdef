"""Machine code of a cubin beside the PTX that it came from, by NVIDIA's nvdisasm.

With line information a cubin says of each machine instruction from which line of the PTX it was
made (section ``.nv_debug_line_sass``). Source: CUDA Binary Utilities, "nvdisasm".
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from optiml_magic.compilers.cached import put
from optiml_magic.model.build import MachineInstruction
from optiml_magic.model.codec import from_json, to_json

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_CODE = re.compile(
    r"^\s*/\*[0-9a-f]+\*/\s+(?:\{\s*)?(?P<text>(?:@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)[^;]*)"
)
_ROUTINE = re.compile(r"^\s*\$__internal\w*\$.*:")
_PTX = ".nv_debug_ptx_txt"
_SECONDS = 60.0
_SCHEMA = 1
_Code = dict[str, tuple[MachineInstruction, ...]]


def disassemble(cubin: bytes) -> _Code | None:
    """The instructions of each kernel by lowered name; None where nvdisasm is not installed.

    Left out are the routines that division and roots call for operands out of their usual range.
    """
    tool = nvdisasm()
    if tool is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "-gp", "-c", file.name]
        done = subprocess.run(  # noqa: S603  # our own tool on our own file
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    return _parsed(done.stdout) if done.returncode == 0 else None


@cache
def nvdisasm() -> Path | None:
    """The wheel's program, or one on the PATH."""
    try:
        import nvidia
    except ImportError:
        pass
    else:
        names = ("nvdisasm", "nvdisasm.exe")
        found = [
            p for root in nvidia.__path__ for n in names for p in Path(root).glob(f"*/bin/{n}")
        ]
        if found:
            return found[0]
    on_path = shutil.which("nvdisasm")
    return Path(on_path) if on_path else None


class RememberedCode:
    """``disassemble`` that keeps what it found in a folder, by the hash of the cubin."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, cubin: bytes) -> _Code | None:
        entry = self._folder / f"{_SCHEMA}-{hashlib.sha256(cubin).hexdigest()}.json"
        with contextlib.suppress(OSError, ValueError):  # absent, or cut short: ask again
            return from_json(_Code, entry.read_bytes())
        code = disassemble(cubin)
        if code is not None:
            with contextlib.suppress(OSError):  # a full disk costs time, never a result
                self._folder.mkdir(parents=True, exist_ok=True)
                put(entry, to_json(_Code, code).encode())
        return code


def _parsed(text: str) -> _Code:
    found: dict[str, list[MachineInstruction]] = {}
    current: list[MachineInstruction] = []
    line = 0
    for row in text.splitlines():
        if section := _SECTION.match(row):
            current, line = found.setdefault(section[1], []), 0
        elif _ROUTINE.match(row):
            current = []
        elif place := _LINE.match(row):
            line = int(place[2]) if place[1] == _PTX else 0
        elif code := _CODE.match(row):
            text = " ".join(code["text"].split())
            current.append(MachineInstruction(code["opcode"], line, text))
    return {name: tuple(_without_padding(code)) for name, code in found.items()}


def _without_padding(code: list[MachineInstruction]) -> list[MachineInstruction]:
    """Behind the last jump to itself stand only NOPs, which nobody executes."""
    end = len(code)
    while end and code[end - 1].opcode == "NOP":
        end -= 1
    return code[: end - 1] if end and code[end - 1].opcode == "BRA" else code[:end]
