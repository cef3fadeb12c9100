"""``import polypath`` is quick: nothing is loaded until it is used."""

import subprocess
import sys

#: Seconds of processor time that the import may take on an undisturbed machine.
LIMIT = 0.3
#: The import, and just before and after it a fixed amount of work. Prints the import's processor
#: time, and that of the slower of both pieces of work.
CODE = """
import time

def work():
    begin = time.process_time()
    sum(number * number for number in range(300_000))
    return time.process_time() - begin

first = work()
begin = time.process_time()
import polypath
imported = time.process_time() - begin
print(imported, max(first, work()))
"""


def _python(code: str) -> str:
    words = [sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_the_import_takes_less_than_the_limit() -> None:
    """The best of five, so that a busy machine has to disturb all of them.

    A slower processor gets more time: as many times the limit as the work took longer than 0.1 s.
    """
    attempts = [tuple(map(float, _python(CODE).split())) for _ in range(5)]
    assert min(imported / max(work / 0.1, 1) for imported, work in attempts) < LIMIT, attempts


def test_the_import_loads_no_large_package() -> None:
    code = "import sys, polypath; print(*sys.modules)"
    loaded = set(_python(code).split())
    assert not loaded & {"numpy", "pandas", "pyarrow", "scipy", "matplotlib", "polypath._core"}


def test_every_name_is_there() -> None:
    code = "import polypath; print(*(getattr(polypath, one) is None for one in polypath.__all__))"
    assert set(_python(code).split()) == {"False"}
    code = "import polypath.simulation, polypath.sweeps, polypath; polypath.sweep; polypath.nothing"
    late = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert late.stderr.splitlines()[-1] == (
        "AttributeError: module 'polypath' has no attribute 'nothing'"
    )
    assert "callable" not in late.stderr


def test_names_of_functions_are_no_modules() -> None:
    """Modules that are imported first do not take the place of functions."""
    code = (
        "import polypath.papers, polypath; print(callable(polypath.simulate), "
        "callable(polypath.sweep), callable(polypath.plot), callable(polypath.load))"
    )
    assert _python(code).split() == ["True"] * 4
