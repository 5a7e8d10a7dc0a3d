"""vLLM's side of the guard: a general plugin, loaded in every process of the engine.

Internals are recognised by what they have, not by version; what is not recognised is left out, and the start line
says so. Nothing here is imported before the guard is switched on.
"""

import sys


def register() -> None:
    """Entry point of `vllm.general_plugins`. Does nothing unless the guard is switched on."""
    from culpa_guard.settings import BadSetting, read_settings

    try:
        settings = read_settings()
    except BadSetting as error:
        sys.stderr.write(f"culpa-guard: not switched on: {error}\n")
        return
    if settings is None:
        return
    from culpa_guard.vllm.attach import attach

    attach(settings)
