"""The guard of the reference engine: checks that every stage works on what the scheduler gave it.

`culpa_guard` brings modes, counting and the files; what is here knows this engine. Both are loaded only where
`CULPA_GUARD` switches them on.
"""

import os
from collections.abc import Mapping, Sequence

from culpa_lab.engine.cache_groups import CacheGroup
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.errors import BadLaunch
from culpa_lab.engine.logs import log
from culpa_lab.engine.watch import ScheduleWatch, StageWatch
from culpa_lab.model import ModelConfig

SWITCH = "CULPA_GUARD"


def stage_watch(
    config: EngineConfig, model: ModelConfig, rank: int, environment: Mapping[str, str] = os.environ
) -> StageWatch | None:
    """The guard of a stage; None where it is not switched on."""
    if not environment.get(SWITCH, "").strip():
        return None
    from culpa_guard import read_settings
    from culpa_lab.guard.stage import StageGuard

    settings = read_settings(environment)
    if settings is None:
        return None
    log.info(f"The guard watches this stage, mode {settings.text}")
    return StageGuard(settings, config, model, rank)


def schedule_watch(
    config: EngineConfig, groups: Sequence[CacheGroup], environment: Mapping[str, str] = os.environ
) -> ScheduleWatch | None:
    """What writes down the schedule beside the guard's own files; None where there is no guard or no folder."""
    if not environment.get(SWITCH, "").strip():
        return None
    from culpa_guard import read_settings
    from culpa_lab.guard.schedule import ScheduleFile

    settings = read_settings(environment)
    if settings is None or settings.out is None:
        return None
    return ScheduleFile(settings.out, config, groups)


def check_switch(environment: Mapping[str, str] = os.environ) -> None:
    """Raise BadLaunch where the guard is asked for and can't be had."""
    if not environment.get(SWITCH, "").strip():
        return
    try:
        from culpa_guard import read_settings
        from culpa_guard.settings import BadSetting
    except ImportError:
        raise BadLaunch(f"{SWITCH} is set, and the guard (culpa_guard) is not installed") from None
    try:
        settings = read_settings(environment)
    except BadSetting as error:
        raise BadLaunch(str(error)) from None
    if settings is not None and settings.plants:
        from culpa_lab.guard.plant import check_plant

        for planted in settings.plants:
            check_plant(planted)


__all__ = ["check_switch", "schedule_watch", "stage_watch"]
