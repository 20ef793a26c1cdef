"""Which line of the user's text an instruction came from (PTX ISA, ".loc" and ".file")."""

from __future__ import annotations

import re

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(.*)")
_AT = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")


class SourceLines:
    """Follows the ``.loc`` directives; ``line`` is the current line of the main file."""

    def __init__(self, text: str) -> None:
        files = {int(number): name for number, name in _FILE.findall(text)}
        # NVRTC numbers files by first use; a header can only come first through its inlined code.
        user = [n for n, name in sorted(files.items()) if "/include/" not in name]
        # A header that was typed has no folder that tells it from the text.
        text_itself = [n for n in user if files[n].endswith("/cell.cu")]
        self._main = (text_itself or user or [1])[0]
        self.line = 0

    def follow(self, directive: str) -> None:
        match = _LOC.match(directive)
        if match is None:
            return
        file, line = int(match[1]), int(match[2])
        inlined = _AT.search(match[3])
        if file != self._main and inlined and int(inlined[1]) == self._main:
            line = int(inlined[2])
        elif file != self._main:
            return  # deeper in a header: keep the line of the user's text that led there
        if line:  # line 0 marks code that the compiler moved; what stood before is the better guess
            self.line = line
