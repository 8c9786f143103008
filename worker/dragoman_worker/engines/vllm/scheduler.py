"""Extension of the scheduler that vLLM chooses, in its engine process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_CHOOSE: Final = "get_scheduler_cls"


def extend(config_class: Any, derive: Callable[[type], type]) -> None:
    """Make `config_class` choose what `derive` makes of its choice; once per engine process.

    `config_class` is vLLM's SchedulerConfig. Several extensions add up. A vLLM without the known
    function is left as it is.
    """
    choose = vars(config_class).get(_CHOOSE)
    if choose is not None:
        setattr(config_class, _CHOOSE, lambda config: derive(choose(config)))
