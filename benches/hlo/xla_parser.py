"""Parses HLO text with XLA's own parser, for the benchmark `hlo-text` to compare with.

Reads a path per line, and answers each with the seconds that parsing the file took.
"""

import pathlib
import sys
import time

from jaxlib import _hlo

for line in sys.stdin:
    text = pathlib.Path(line.rstrip("\n")).read_text()
    start = time.perf_counter()
    module = _hlo.hlo_module_from_text(text)
    print(time.perf_counter() - start, flush=True)
    del module
