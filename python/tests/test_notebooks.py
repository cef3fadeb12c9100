"""The notebooks of the documentation run from top to bottom, and are kept without outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from places import ROOT

NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)
# Warnings of the kernel's own event loop and sockets.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_notebook_runs(file: Path, tmp_path: Path) -> None:
    notebook = nbformat.reads(file.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    pictures = [o for cell in code for o in cell.outputs if "image/png" in o.get("data", {})]
    assert len(pictures) >= 2
    said = "".join(o.text for cell in code for o in cell.outputs if o.output_type == "stream")
    assert "F01 | optimal transfer time | 122.3 s | " in said
    assert all(o.output_type != "error" for cell in code for o in cell.outputs)


def test_there_is_a_notebook() -> None:
    assert [file.name for file in NOTEBOOKS] == ["first-steps.ipynb"]
