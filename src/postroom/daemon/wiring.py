"""From the settings to what executes turns: keys are fetched only here, when they are needed."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from postroom.clock import Clock
from postroom.providers.registry import CustomProvider, ProviderSettings, Registry
from postroom.providers.script_rules import Script, read_script
from postroom.settings import Secret, SecretMissing, Settings

log = logging.getLogger("postroom.daemon")

SCRIPT = "script.json"


def registry_for(
    settings: Settings, home: Path, clock: Clock, environment: Mapping[str, str] = os.environ
) -> Registry:
    models = settings.models
    providers = ProviderSettings(
        anthropic_api_key=_revealed(models.anthropic and models.anthropic.api_key),
        anthropic_oauth_token=_revealed(models.anthropic and models.anthropic.oauth_token),
        openai_api_key=_revealed(models.openai and models.openai.api_key),
        custom={
            name: CustomProvider(
                base_url=custom.base_url,
                api_key=_revealed(custom.api_key),
                model=custom.model,
                name=custom.name,
                harness=custom.harness,
            )
            for name, custom in settings.custom_providers.items()
        },
        script=_script(home / SCRIPT),
    )
    return Registry(providers, parent=environment, clock=clock)


def _revealed(secret: Secret | None) -> str:
    """A key that is not to be had must not keep the others from working; its agent will say so."""
    try:
        return secret.reveal() if secret else ""
    except SecretMissing as error:
        log.warning("%s", error)
        return ""


def _script(path: Path) -> Script:
    return read_script(path.read_bytes()) if path.exists() else Script()
