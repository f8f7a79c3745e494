"""From the settings to what executes turns: keys are fetched only here, when they are needed."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from postroom.clock import Clock
from postroom.providers.registry import CustomProvider, ProviderSettings, Registry
from postroom.providers.script_rules import Script, read_script
from postroom.settings import Secret, SecretMissing, Settings

log = logging.getLogger("postroom.providers")

SCRIPT = "script.json"


def registry_for(
    settings: Settings, home: Path, clock: Clock, environment: Mapping[str, str] = os.environ
) -> Registry:
    models = settings.models
    script, problem = read_own_script(home)
    if problem:
        log.warning("%s", problem)
    providers = ProviderSettings(
        anthropic_api_key=_revealed(models.anthropic and models.anthropic.api_key),
        anthropic_oauth_token=_revealed(models.anthropic and models.anthropic.oauth_token),
        openai_api_key=_revealed(models.openai and models.openai.api_key),
        anthropic_base_url=(models.anthropic and models.anthropic.base_url) or "",
        openai_base_url=(models.openai and models.openai.base_url) or "",
        custom={
            name: CustomProvider(
                base_url=custom.base_url,
                api_key=_revealed(custom.api_key),
                model=custom.model,
                name=custom.name,
                harness=custom.harness,
                wire=custom.wire,
            )
            for name, custom in settings.custom_providers.items()
        },
        script=script,
        script_problem=problem,
    )
    return Registry(providers, parent=environment, clock=clock)


def _revealed(secret: Secret | None) -> str:
    """A key that is not to be had must not keep the others from working; its agent will say so."""
    try:
        return secret.reveal() if secret else ""
    except SecretMissing as error:
        log.warning("%s", error)
        return ""


def read_own_script(home: Path) -> tuple[Script, str]:
    """What agents of the `script` provider say, and what is wrong with the file, which concerns only them."""
    path = home / SCRIPT
    try:
        return read_script(path.read_bytes()), ""
    except FileNotFoundError:
        return Script(), ""
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Script(), f"{path} cannot be used: {error}. Correct the file, or remove it."
