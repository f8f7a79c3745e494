"""From the provider id in an agent's settings to the provider that executes its turns.

Each is imported when it is first made: most offices use one, and commands none.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from postroom.clock import Clock, SystemClock
from postroom.errors import NotFound
from postroom.providers.failures import Product
from postroom.providers.fallback import run_with_fallback
from postroom.providers.models import DEFAULT as DEFAULT_MODEL
from postroom.providers.models import resolve_model
from postroom.providers.protocol import Provider, TurnRequest, TurnStream
from postroom.providers.script import ScriptProvider
from postroom.providers.script_rules import Script

DEFAULT = "anthropic"
CUSTOM = "custom:"
NO_KEY = "none"  # servers on one's own machine often want no key, but the programs and packages insist on one


class UnknownProvider(NotFound):
    """No adapter registered for provider '{provider}'. Choose one of: {known}."""

    code = "PROVIDER_NOT_FOUND"


class UnknownCustomProvider(NotFound):
    """Custom provider '{provider}' not found in settings.custom_providers."""

    code = "CUSTOM_PROVIDER_NOT_FOUND"


class CustomProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A server of the user's own, and what talks to it: a program, or we directly, as `wire` says."""

    base_url: str
    api_key: str = ""
    model: str = ""
    name: str = ""
    harness: Literal["claude", "codex", "api"] = "claude"
    wire: Literal["openai", "anthropic"] = "openai"

    def __repr__(self) -> str:
        return f"CustomProvider({self.name!r}, {self.base_url!r}, harness={self.harness!r})"


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Keys given here win over the environment. `pass_variables` are further names the programs may have.
    The base URLs are those of `anthropic-api` and `openai-api`; empty stands for the vendor's."""

    anthropic_api_key: str = ""
    anthropic_oauth_token: str = ""
    anthropic_base_url: str = ""
    openai_api_key: str = ""
    openai_base_url: str = ""
    custom: Mapping[str, CustomProvider] = {}
    programs: Mapping[str, str] = {}
    pass_variables: tuple[str, ...] = ()
    script: Script = Script()
    script_problem: str = ""

    def __repr__(self) -> str:
        return f"ProviderSettings(custom={sorted(self.custom)}, programs={dict(self.programs)})"


class Choice(msgspec.Struct, frozen=True):
    """A provider id and a model as an agent's settings name them; both may be empty."""

    provider: str = ""
    model: str = ""


class Registry:
    def __init__(
        self,
        settings: ProviderSettings | None = None,
        *,
        parent: Mapping[str, str] = os.environ,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings or ProviderSettings()
        self._parent = parent
        self._clock = clock or SystemClock()
        self._made: dict[str, Provider] = {}
        self._makers: dict[str, Callable[[], Provider]] = {
            "anthropic": self._claude,
            "openai": self._codex,
            "opencode": self._opencode,
            "anthropic-api": self._anthropic_api,
            "openai-api": self._openai_api,
            "script": self._scripted,
        }

    @property
    def known(self) -> list[str]:
        return [*self._makers, *(f"{CUSTOM}{name}" for name in self._settings.custom)]

    def get(self, provider_id: str) -> Provider:
        """The same id gives the same provider, which may remember its sessions. Raises UnknownProvider."""
        provider_id = _tidy(provider_id)
        if provider_id not in self._made:
            self._made[provider_id] = self._make(provider_id)
        return self._made[provider_id]

    def model_for(self, choice: Choice) -> str:
        """The model to ask for: the agent's own, else its custom provider's; short names are filled in."""
        provider_id = _tidy(choice.provider)
        custom = (
            self._settings.custom.get(provider_id.removeprefix(CUSTOM)) if _is_custom(provider_id) else None
        )
        own = "" if choice.model.strip().lower() == DEFAULT_MODEL else choice.model
        return resolve_model(provider_id, own or (custom.model if custom else ""))

    def attempts(
        self, choices: Sequence[Choice], request: TurnRequest, sessions: Mapping[str, str] | None = None
    ) -> list[tuple[Provider, TurnRequest]]:
        """One request per choice: with its model, and with the agent's session at that provider, if any."""
        attempts: list[tuple[Provider, TurnRequest]] = []
        for position, choice in enumerate(choices):
            provider = self.get(choice.provider)
            first = position == 0
            session = request.session_id if first else (sessions or {}).get(provider.name)
            fitting = msgspec.structs.replace(
                request,
                model=self.model_for(choice),
                session_id=session,
                session_total=request.session_total if first else None,
            )
            attempts.append((provider, fitting))
        return attempts

    def run(
        self, choices: Sequence[Choice], request: TurnRequest, sessions: Mapping[str, str] | None = None
    ) -> TurnStream:
        """The turn by the first choice that gets somewhere."""
        return run_with_fallback(self.attempts(choices, request, sessions))

    def _make(self, provider_id: str) -> Provider:
        if _is_custom(provider_id):
            name = provider_id.removeprefix(CUSTOM)
            custom = self._settings.custom.get(name)
            if custom is None:
                raise UnknownCustomProvider(provider=name)
            return self._custom(provider_id, custom)
        maker = self._makers.get(provider_id)
        if maker is None:
            raise UnknownProvider(provider=provider_id, known=", ".join(self.known))
        return maker()

    def _scripted(self) -> Provider:
        settings = self._settings
        return ScriptProvider(settings.script, clock=self._clock, problem=settings.script_problem)

    def _claude(self) -> Provider:
        from postroom.providers.claude import Claude

        return Claude(
            program=self._program("claude"),
            settings=self._claude_keys(),
            pass_variables=self._settings.pass_variables,
            parent=self._parent,
            clock=self._clock,
        )

    def _claude_keys(self) -> dict[str, str]:
        if token := self._settings.anthropic_oauth_token:
            return {"CLAUDE_CODE_OAUTH_TOKEN": token, "ANTHROPIC_AUTH_TOKEN": "", "ANTHROPIC_API_KEY": ""}
        key = self._settings.anthropic_api_key
        return {"ANTHROPIC_API_KEY": key} if key else {}

    def _codex(self) -> Provider:
        from postroom.providers.codex import Codex

        key = self._settings.openai_api_key
        return Codex(
            program=self._program("codex"),
            settings={"OPENAI_API_KEY": key, "CODEX_API_KEY": key} if key else {},
            pass_variables=self._settings.pass_variables,
            parent=self._parent,
            clock=self._clock,
        )

    def _opencode(self) -> Provider:
        from postroom.providers.opencode import OpenCode

        return OpenCode(
            program=self._program("opencode"),
            pass_variables=self._settings.pass_variables,
            parent=self._parent,
            clock=self._clock,
        )

    def _anthropic_api(self) -> Provider:
        from postroom.providers.anthropic_api import BASE_URL, AnthropicApi

        key, url = self._settings.anthropic_api_key, self._settings.anthropic_base_url
        key = self._api_key(key, url, "ANTHROPIC_API_KEY")
        return AnthropicApi(api_key=key, base_url=url or BASE_URL, clock=self._clock)

    def _openai_api(self) -> Provider:
        from postroom.providers.openai_api import BASE_URL, OpenAIApi

        key, url = self._settings.openai_api_key, self._settings.openai_base_url
        key = self._api_key(key, url, "OPENAI_API_KEY")
        return OpenAIApi(api_key=key, base_url=url or BASE_URL, clock=self._clock)

    def _api_key(self, own: str, base_url: str, variable: str) -> str:
        """The key of the environment is the vendor's: another server gets it only if the settings say so."""
        return own or (NO_KEY if base_url else self._parent.get(variable, ""))

    def _custom(self, provider_id: str, custom: CustomProvider) -> Provider:
        label = custom.name or provider_id
        passed = self._settings.pass_variables
        if custom.harness == "claude":
            from postroom.providers import claude

            return claude.Claude(
                name=provider_id,
                program=self._program("claude"),
                settings={
                    "ANTHROPIC_BASE_URL": custom.base_url,
                    "ANTHROPIC_AUTH_TOKEN": custom.api_key or NO_KEY,
                    "ANTHROPIC_API_KEY": "",
                    "CLAUDE_CODE_OAUTH_TOKEN": "",
                },
                pass_variables=passed,
                parent=self._parent,
                clock=self._clock,
                product=_renamed(claude.PRODUCT, f"{label} (through Claude Code)"),
                vendor=custom.base_url,
            )
        if custom.harness == "codex":
            from postroom.providers import codex

            return codex.Codex(
                name=provider_id,
                program=self._program("codex"),
                pass_variables=passed,
                parent=self._parent,
                clock=self._clock,
                product=_renamed(codex.PRODUCT, f"{label} (through Codex)"),
                server=codex.CodexServer(base_url=custom.base_url, api_key=custom.api_key or NO_KEY),
            )
        if custom.wire == "anthropic":
            from postroom.providers import anthropic_api

            made, product = anthropic_api.AnthropicApi, anthropic_api.PRODUCT
        else:
            from postroom.providers import openai_api

            made, product = openai_api.OpenAIApi, openai_api.PRODUCT
        return made(
            name=provider_id,
            api_key=custom.api_key or NO_KEY,
            base_url=custom.base_url,
            clock=self._clock,
            product=_renamed(product, label),
        )

    def _program(self, name: str) -> str:
        return self._settings.programs.get(name, name)


def _tidy(provider_id: str) -> str:
    """Settings may write `anthropic_api` for `anthropic-api`; custom ids are the user's own."""
    provider_id = provider_id.strip() or DEFAULT
    return provider_id if _is_custom(provider_id) else provider_id.replace("_", "-")


def _is_custom(provider_id: str) -> bool:
    return provider_id.startswith(CUSTOM)


def _renamed(product: Product, label: str) -> Product:
    login = f"set the API key of {label} in the settings"
    return msgspec.structs.replace(product, label=label, login=login)
