"""vLLM's side of the guard: a general plugin, loaded in every process of the engine."""


def register() -> None:
    """Entry point of `vllm.general_plugins`. Does nothing unless the guard is switched on."""
