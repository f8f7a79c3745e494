"""A program gets what it needs, and no secret of anything else."""

from pathlib import Path

from postroom.providers import TurnRequest
from postroom.providers.environment import child_environment, secrets_in

REQUEST = TurnRequest(
    agent_id="coder", prompt="x", workspace=Path("/"), turn_id="t1", environment={"EXTRA": "1", "LANG": "de"}
)
PARENT = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LANG": "en",
    "LC_TIME": "C",
    "https_proxy": "http://p",
    "ANTHROPIC_API_KEY": "a-key",
    "OPENAI_API_KEY": "o-key",
    "POSTROOM_TOKEN": "office-token",
    "AWS_SECRET_ACCESS_KEY": "s",
    "CLAUDECODE": "1",
    "LD_PRELOAD": "/evil.so",
    "POSTROOM_AGENT_ID": "somebody-else",
}


def test_only_what_is_on_the_list_is_passed() -> None:
    environment = child_environment(REQUEST, PARENT, own=("ANTHROPIC_API_KEY",))
    assert environment == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LANG": "de",
        "LC_TIME": "C",
        "https_proxy": "http://p",
        "TERM": "dumb",
        "ANTHROPIC_API_KEY": "a-key",
        "EXTRA": "1",
        "POSTROOM_AGENT_ID": "coder",
        "TINYAGI_AGENT_ID": "coder",
        "POSTROOM_TURN_ID": "t1",
    }


def test_settings_win_over_the_parent_even_when_empty() -> None:
    environment = child_environment(
        REQUEST, PARENT, own=("ANTHROPIC_API_KEY",), settings={"ANTHROPIC_API_KEY": ""}
    )
    assert environment["ANTHROPIC_API_KEY"] == ""


def test_the_marks_cannot_be_overwritten() -> None:
    request = TurnRequest(
        agent_id="coder", prompt="x", workspace=Path("/"), environment={"POSTROOM_AGENT_ID": "root"}
    )
    assert child_environment(request, {})["POSTROOM_AGENT_ID"] == "coder"


def test_values_that_must_not_be_shown_are_known() -> None:
    assert secrets_in({"A_KEY": "short", "B_TOKEN": "longer-one", "C": "plain", "D_SECRET": ""}) == [
        "longer-one",
        "short",
    ]
