"""The options of `queue create` and `queue set`, and the settings they stand for."""

from typing import Annotated, Any

from postroom.kernel.model import ConsumerMode, Ordering, Overflow, QueueSettings
from postroom.terminal.cli.command import GatheredOptions
from postroom.terminal.cli.options import choice, option
from postroom.terminal.cli.output import span
from postroom.terminal.cli.values import CLEAR, duration_or_none, text_or_none, whole_or_none

_DEFAULT = QueueSettings()
_PANEL = "Settings"


def _setting(kind: str, about: str, name: str, **more: Any) -> Any:
    return option(kind, about, name, panel=_PANEL, **more)


SETTINGS = GatheredOptions(
    "settings",
    {
        "ordering": Annotated[
            Ordering | None,
            choice(Ordering, "What goes first", "--ordering", default=_DEFAULT.ordering, panel=_PANEL),
        ],
        "consumer_mode": Annotated[
            ConsumerMode | None,
            choice(
                ConsumerMode,
                "Consumers compete for each message, or every subscriber gets it",
                "--mode",
                default=_DEFAULT.consumer_mode,
                panel=_PANEL,
            ),
        ],
        "visibility_timeout_s": Annotated[
            float | None,
            _setting(
                "DURATION",
                f"How long a claim is good. Default {span(_DEFAULT.visibility_timeout_s)}.",
                "--lease",
            ),
        ],
        "max_retries": Annotated[
            int | None,
            _setting(
                "N",
                f"Attempts before it is a dead letter. Default {_DEFAULT.max_retries}.",
                "--max-retries",
            ),
        ],
        "backoff_base_s": Annotated[
            float | None,
            _setting(
                "DURATION",
                f"Pause after the first failure; it doubles. Default {span(_DEFAULT.backoff_base_s)}.",
                "--backoff-base",
            ),
        ],
        "backoff_cap_s": Annotated[
            float | None,
            _setting(
                "DURATION", f"The longest pause. Default {span(_DEFAULT.backoff_cap_s)}.", "--backoff-cap"
            ),
        ],
        "concurrency": Annotated[
            int | None,
            _setting("N", "Most claims at once, or none.", "--concurrency", parser=whole_or_none),
        ],
        "rate_limit": Annotated[
            int | None,
            _setting("N", "Most messages handed out in a period, or none.", "--rate", parser=whole_or_none),
        ],
        "rate_period_s": Annotated[
            float | None,
            _setting("DURATION", f"That period. Default {span(_DEFAULT.rate_period_s)}.", "--rate-period"),
        ],
        "rate_key": Annotated[
            str | None,
            _setting(
                "NAME",
                "A label: the rate is for each value of it; or none.",
                "--rate-key",
                parser=text_or_none,
            ),
        ],
        "max_depth": Annotated[
            int | None,
            _setting("N", "Most messages that may wait, or none.", "--max-depth", parser=whole_or_none),
        ],
        "overflow_policy": Annotated[
            Overflow | None,
            choice(
                Overflow,
                "What happens beyond that",
                "--overflow",
                default=_DEFAULT.overflow_policy,
                panel=_PANEL,
            ),
        ],
        "default_ttl_s": Annotated[
            float | None,
            _setting("DURATION", "Messages expire after this, or none.", "--ttl", parser=duration_or_none),
        ],
        "schema": Annotated[
            str | None,
            _setting(
                "NAME", "Bodies must match: name or name@version, or none.", "--schema", parser=text_or_none
            ),
        ],
        "retention_s": Annotated[
            float | None,
            _setting(
                "DURATION",
                "Archived messages are dropped after this, or none: kept for ever.",
                "--retention",
                parser=duration_or_none,
            ),
        ],
        "description": Annotated[str | None, _setting("TEXT", "What it is for.", "--description")],
        "display_name": Annotated[str | None, _setting("TEXT", "How people call it.", "--display-name")],
    },
)


def chosen(given: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value is CLEAR else value for name, value in given.items()}
