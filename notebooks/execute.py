"""Run the notebooks and store what they show, for readers who do not run them.

Stored is what any machine would show: outcomes on the emulated device without a model, as static
HTML, without the text beside it, which tells how long the search took here, and without the line
of progress.
"""

from __future__ import annotations

import os
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parent
HTML = "text/html"
SETTINGS = {"OPTIML_DEVICE": "emulated:h200", "OPTIML_LLM": "none"}


def kept(output: nbformat.NotebookNode) -> bool:
    """Whether an output is an outcome, not the progress towards it."""
    return output.output_type != "display_data" or HTML in output.data


os.environ.update(SETTINGS)
for path in sorted(FOLDER.glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook,
        timeout=600,
        record_timing=False,
        resources={"metadata": {"path": str(FOLDER)}},
    ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if kept(output)]
            for output in cell.outputs:
                if HTML in output.get("data", ()):
                    del output.data["text/plain"]
    notebook.metadata.language_info = {"name": "python"}  # its version is this machine's
    nbformat.write(notebook, path)
    print(path.name)
