"""The child process of `LanguageModel`: llama.cpp's HTTP server until standard input ends.

`python -m imagecall.middleware.embedded.llm_server WEIGHTS TEMPLATE` prints the server's URL once it answers.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

__all__ = ["start"]

_CONTEXT = 8192
"""Tokens: as far back as SmolLM2 was trained to look."""
_LONGEST_ANSWER = 200
"""Tokens. A model this small may repeat itself for ever."""
_ERRORS_ONLY = 1


def start(weights: str, template: str) -> Any:
    """Serve on a free port of 127.0.0.1, for as long as the returned server is referenced.

    Args:
        weights: a GGUF file.
        template: the file of a chat template.
    """
    import xllamacpp

    server = xllamacpp.Server(_params(xllamacpp.CommonParams(), weights, template))
    print(server.listening_address, flush=True)  # noqa: T201  this is how the parent learns it
    return server


def _params(params: Any, weights: str, template: str) -> Any:
    # llama.cpp's threads spin while they wait for each other: one more than there are idle cores
    # makes it many times slower.
    threads = max(1, (os.cpu_count() or 1) // 2)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.model.path = weights
    params.model_alias = {"smollm2"}
    params.use_jinja = True
    params.chat_template = Path(template).read_text("utf-8")
    params.n_ctx = _CONTEXT
    params.n_parallel = 1
    params.n_predict = _LONGEST_ANSWER
    params.sampling.temp = 0.0
    params.fit_params = False  # measures the GPU's memory, and there is none to fill
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.cors_origins = ""
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = _ERRORS_ONLY
    return params


if __name__ == "__main__":  # pragma: no cover  it runs in a process that is killed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the parent's business
    running = start(*sys.argv[1:])
    sys.stdin.read()
    os._exit(0)  # without destroying the server, which may wait for ever for its own threads
