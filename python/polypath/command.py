"""The program `polypath-lab`: imports policies of one's own before the simulator."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

#: The option of a module with policies of one's own. It takes the place of polypath's simulator,
#: which :mod:`polypath.lab` imports.
MODULE = "--module"


def entry() -> NoReturn:
    """Entry point of the installed command."""
    words = sys.argv[1:]
    if words[:1] == [MODULE] and len(words) > 1:
        try:
            importlib.import_module(words[1])
        except ImportError as error:
            print(f"polypath-lab: {MODULE} {words[1]}: {error}", file=sys.stderr)
            sys.exit(2)
    from polypath.lab import main

    sys.exit(main(words))
