"""How layers are spread over pipeline stages."""

from collections.abc import Sequence

from culpa.layout.errors import BadLayout


def default_partition(layers: int, stages: int) -> tuple[int, ...]:
    """How vLLM splits layers over pipeline stages when nobody says.

    Source: `get_pp_indices`, https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/distributed/utils.py. Layers
    that are left over go to the stages before the last, from behind.
    """
    partition = [layers // stages] * stages
    for index in range(2, layers % stages + 2):
        partition[-index] += 1
    return tuple(partition)


def aligned_partition(partition: Sequence[int], period: int) -> tuple[int, ...] | None:
    """The nearest partition whose stages all begin at a multiple of the period; None if there is none.

    23,23,18 with a period of 4 gives 24,24,16. A tie goes to the later boundary, since the last stage also
    holds the output head and is best off with fewer layers.
    """
    layers = sum(partition)
    if period < 2 or layers % period or layers // period < len(partition):
        return None
    ends: list[int] = []
    for stage in range(len(partition) - 1):
        nearest = (sum(partition[: stage + 1]) + period // 2) // period * period
        earliest = (ends[-1] if ends else 0) + period
        latest = layers - (len(partition) - 1 - stage) * period
        ends.append(min(max(nearest, earliest), latest))
    return tuple(end - start for start, end in zip([0, *ends], [*ends, layers], strict=True))


def parse_partition(text: str) -> tuple[int, ...]:
    """`23,23,18` as numbers, as vLLM reads VLLM_PP_LAYER_PARTITION: zero and negative ones pass here.

    Raises BadLayout where a part is no whole number.
    """
    try:
        parts = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadLayout(f"partition {text!r}: give whole numbers with commas, such as 23,23,18") from None
    if len(parts) > 1024:
        raise BadLayout(f"partition of {len(parts)} stages: more than any launch has")
    return parts


def check_partition(partition: Sequence[int], layers: int, stages: int) -> None:
    """What vLLM itself checks: as many parts as stages, and the sum. Raises BadLayout."""
    shown = ",".join(map(str, partition))
    if len(partition) != stages:
        raise BadLayout(
            f"partition {shown} has {len(partition)} part{'s' if len(partition) != 1 else ''}, and there are "
            f"{stages} pipeline stages (--pipeline-parallel-size)"
        )
    if sum(partition) != layers:
        raise BadLayout(f"partition {shown} adds up to {sum(partition)}, and the model has {layers} layers")


def stage_ranges(partition: Sequence[int]) -> tuple[range, ...]:
    """The layers of each stage as the engine takes them: from the sum of the parts before it, as many as its part.

    With negative parts a stage may reach past the model's layers: there it has none.
    """
    layers = sum(partition)
    starts = [sum(partition[:index]) for index in range(len(partition))]
    return tuple(
        range(max(0, start), max(0, start, min(layers, start + size)))
        for start, size in zip(starts, partition, strict=True)
    )


def cut_boundaries(partition: Sequence[int], period: int | None) -> tuple[int, ...]:
    """The first layers of stages that do not begin at a multiple of the period."""
    if period is None or period < 2:
        return ()
    starts = [sum(partition[:index]) for index in range(1, len(partition))]
    return tuple(start for start in starts if start % period)
