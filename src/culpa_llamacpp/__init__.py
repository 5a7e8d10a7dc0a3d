"""culpa-llamacpp: llama.cpp's HTTP server from the xllamacpp wheel, with llama-server's command line.

No package registry carries a `llama-server` binary; this launcher stands in for it, so that culpa can be
tried and tested on a real engine after `pip install 'culpa[llamacpp]'`.
"""

from culpa_llamacpp.launcher import main

__all__ = ["main"]
