"""The parts of `python -m bench.soak`. The rules for streams are those of the tests."""

import sys
from pathlib import Path

_TESTS = str(Path(__file__).parents[2] / "tests")
if _TESTS not in sys.path:
    sys.path.append(_TESTS)
