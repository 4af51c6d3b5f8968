"""Real model servers, each with the middleware in front and, where it is an ASGI app, inside.

Not part of the ordinary run, since it installs the servers. From the checkout's folder:

    python -m tests.upstreams                      # llama.cpp, LiteLLM, vLLM, an app of one's own
    python -m tests.upstreams --server litellm     # one of them
    python -m tests.upstreams --list               # all there are

It prints a Markdown table, and fails if a cell fails or is missing. Servers and model are kept in
`imagecall-samples` in the cache folder (`XDG_CACHE_HOME`).
"""

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
# Their modules import each other by bare names.
sys.path += [str(_ROOT / "tests"), str(_ROOT / "samples")]
