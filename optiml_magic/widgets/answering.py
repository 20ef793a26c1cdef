"""Answers to a page that is loaded while a cell runs, so that it can show the widgets there are.

Such a page asks what kernel this is, which widgets it has and what state they are in, and shows
none before it knows. ipykernel 7 reads that at once, on a thread of its own, but answers when the
cell has ended.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import Any

_QUESTIONS = ("kernel_info_request", "comm_info_request")
_CONTROL = "jupyter.widget.control"  # the comm on which ipywidgets is asked for states


class Answering:
    """Has these questions answered at once, from ``start`` to ``stop``.

    Without a ``kernel``, or with one that has no such thread (ipykernel 6), it does nothing.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._thread = getattr(kernel, "shell_channel_thread", None)

    def start(self) -> None:
        """Begin; once."""
        self._receive_with(self._received)

    def stop(self) -> None:
        """Leave all to ipykernel again."""
        self._receive_with(getattr(self._kernel, "shell_channel_thread_main", None))

    def _receive_with(self, receive: Any) -> None:
        if self._thread is not None:  # whose socket it is: no other thread may touch it
            stream = self._kernel.shell_stream
            self._thread.io_loop.add_callback(lambda: stream.on_recv(receive, copy=False))

    async def _received(self, message: Any) -> None:
        kernel, session = self._kernel, self._kernel.session
        sender, frames = session.feed_identities(message, copy=False)
        try:
            peeked = session.deserialize(frames, content=False, copy=False)
            answered = self._answered(peeked["header"], session.unpack(peeked["content"]))
        except Exception:  # noqa: BLE001  # ipykernel says what is wrong with it
            answered = False
        if not answered:
            await kernel.shell_channel_thread_main(message)
            return
        asked = session.deserialize(frames, copy=False)
        kernel._publish_status("busy", "shell", asked)  # noqa: SLF001
        reply = kernel.shell_handlers[asked["msg_type"]](kernel.shell_stream, sender, asked)
        if isawaitable(reply):
            await reply
        kernel._publish_status("idle", "shell", asked)  # noqa: SLF001

    def _answered(self, header: Any, content: Any) -> bool:
        kind = header["msg_type"]
        if header.get("subshell_id") is not None:  # that shell is not the one with the cell
            return False
        if kind == "comm_open":
            return bool(content["target_name"] == _CONTROL)
        if kind == "comm_msg":
            comm = self._kernel.comm_manager.comms.get(content["comm_id"])
            return comm is not None and comm.target_name == _CONTROL
        return kind in _QUESTIONS
