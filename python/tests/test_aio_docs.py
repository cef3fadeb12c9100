"""The examples of docs/asyncio.md, executed: each prints what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "asyncio.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def test_every_block_is_an_example() -> None:
    assert len(EXAMPLES) == PAGE.read_text().count("```python") == 4


@pytest.mark.parametrize(("program", "printed"), EXAMPLES)
def test_an_example_prints_what_the_page_shows(tmp_path: Path, program: str, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
