"""How one turn of an agent is executed: agent programs, HTTP APIs, or the offline script provider."""

from postroom.providers.costs import Cost, cost_of, price_version, turn_cost
from postroom.providers.fallback import run_with_fallback
from postroom.providers.models import resolve_model
from postroom.providers.protocol import (
    Cause,
    ErrorKind,
    Failed,
    Finished,
    Permissions,
    Progress,
    Provider,
    SessionStarted,
    SessionTotal,
    TextChunk,
    ToolDenied,
    ToolUse,
    TurnEvent,
    TurnLimits,
    TurnRequest,
    TurnStream,
    Usage,
    Utterance,
)
from postroom.providers.registry import (
    Choice,
    CustomProvider,
    ProviderSettings,
    Registry,
    UnknownCustomProvider,
    UnknownProvider,
)
from postroom.providers.script import ScriptProvider
from postroom.providers.script_rules import Script, ScriptRule, read_script

__all__ = [
    "Cause",
    "Choice",
    "Cost",
    "CustomProvider",
    "ErrorKind",
    "Failed",
    "Finished",
    "Permissions",
    "Progress",
    "Provider",
    "ProviderSettings",
    "Registry",
    "Script",
    "ScriptProvider",
    "ScriptRule",
    "SessionStarted",
    "SessionTotal",
    "TextChunk",
    "ToolDenied",
    "ToolUse",
    "TurnEvent",
    "TurnLimits",
    "TurnRequest",
    "TurnStream",
    "UnknownCustomProvider",
    "UnknownProvider",
    "Usage",
    "Utterance",
    "cost_of",
    "price_version",
    "read_script",
    "resolve_model",
    "run_with_fallback",
    "turn_cost",
]
