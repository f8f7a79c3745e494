"""Mail passes the hooks one after the other, and passes on whatever they do."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.office.plugins.shop import opened, status, write

from postroom import Room
from postroom.office.plugins import HookContext, PluginState, Transformed
from postroom.office.plugins.registry import STOPPED, TEXT_BYTES, fitting

CONTEXT = HookContext(channel="telegram", sender="Ann", message_id="7", original_message="hi")


async def test_texts_pass_the_hooks_in_order_and_metadata_is_gathered(tmp_path: Path) -> None:
    write(
        tmp_path,
        "one.py",
        """
        async def transform_outgoing(text, context):
            return {"text": f"{text} {context.channel} {context.original_message}",
                    "metadata": {"parseMode": "HTML", "by": "one"}}
        """,
    )
    write(
        tmp_path,
        "two.py",
        """
        from postroom.office.plugins import Transformed
        def transform_outgoing(text, context):
            return Transformed(f"<{text}>", {"by": "two"})
        def transform_incoming(text, context):
            return {"text": text + "?"}
        """,
    )
    plugins = await opened(tmp_path, "one", "two")
    made = await plugins.outgoing("answer", CONTEXT)
    assert made == Transformed("<answer telegram hi>", {"parseMode": "HTML", "by": "two"})
    assert await plugins.incoming("hi", CONTEXT) == "hi?"
    assert (status(plugins, "two").calls, status(plugins, "one").hooks) == (2, ("transform_outgoing",))
    await plugins.close()


JUNK = {
    "none": "None",
    "number": "3",
    "bytes": "b'x'",
    "empty": "'  '",
    "no_text": "{'metadata': {}}",
    "surrogate": "'\\ud800'",
    "huge": f"'x' * {TEXT_BYTES + 1}",
    "escapes": f"'\\x00' * {TEXT_BYTES // 4}",
    "metadata_list": "{'text': 'x', 'metadata': [1]}",
    "metadata_keys": "{'text': 'x', 'metadata': {1: 2}}",
    "metadata_object": "{'text': 'x', 'metadata': {'a': object()}}",
    "metadata_huge": "{'text': 'x', 'metadata': {'a': 'x' * 20000}}",
    "liar": "Liar()",
}


@pytest.mark.parametrize("name", JUNK)
async def test_junk_is_not_taken_and_the_text_goes_on(tmp_path: Path, name: str) -> None:
    source = f"""
        class Liar(dict):
            def get(self, key, default=None):
                raise RuntimeError("no")
        def transform_incoming(text, context):
            return {JUNK[name]}
        transform_outgoing = transform_incoming
        """
    write(tmp_path, "junk.py", source)
    write(tmp_path, "good.py", "def transform_incoming(text, context):\n    return text + '!'\n")
    plugins = await opened(tmp_path, "junk", "good")
    assert await plugins.incoming("hi", CONTEXT) == "hi!"
    assert await plugins.outgoing("hi", CONTEXT) == Transformed("hi")
    assert status(plugins, "junk").failures == 2
    assert status(plugins, "junk").last_error
    await plugins.close()


FAILING = {
    "raises": "raise ValueError('words of ' + text)",
    "exits": "raise SystemExit",
    "hangs": "import time; time.sleep(30)",
    "deep": "return transform_incoming(text, context)",
}


@pytest.mark.parametrize("name", FAILING)
async def test_a_failing_hook_is_counted_and_switched_off_in_the_end(
    tmp_path: Path, room: Room, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    write(tmp_path, "bad.py", f"def transform_incoming(text, context):\n    {FAILING[name]}\n")
    plugins = await opened(tmp_path, "bad", timeout_s=0.1 if name == "hangs" else 10, failures=3)
    await plugins.start(room)
    with caplog.at_level(logging.WARNING, "postroom.plugins"):
        for number in range(1, 6):
            assert await plugins.incoming("secret words", CONTEXT) == "secret words"
            found = status(plugins, "bad")
            assert found.state is (PluginState.RUNNING if number < 3 else PluginState.STOPPED)
    found = status(plugins, "bad")
    assert (found.calls, found.failures, found.failures_in_a_row) == (3, 3, 3)
    assert "switched off" in caplog.text
    assert "secret words" not in caplog.text
    (record,) = await room.records(STOPPED, "bad")
    assert record.data["failures"] == 3
    assert "secret words" not in str(record.data)
    await plugins.close()


async def test_a_success_in_between_begins_the_count_anew(tmp_path: Path) -> None:
    source = """
        count = 0
        def transform_incoming(text, context):
            global count
            count += 1
            if count % 3:
                raise ValueError
            return text + "!"
        """
    write(tmp_path, "moody.py", source)
    plugins = await opened(tmp_path, "moody", failures=3)
    answers = [await plugins.incoming("hi", CONTEXT) for _ in range(9)]
    assert answers == ["hi", "hi", "hi!"] * 3
    assert status(plugins, "moody").state is PluginState.RUNNING
    assert status(plugins, "moody").failures == 6
    await plugins.close()


async def test_one_hook_that_works_does_not_hide_one_that_never_does(tmp_path: Path) -> None:
    source = """
        def transform_incoming(text, context):
            return text
        def transform_outgoing(text, context):
            raise ValueError
        """
    write(tmp_path, "half.py", source)
    plugins = await opened(tmp_path, "half", failures=3)
    for _ in range(3):
        assert await plugins.incoming("hi", CONTEXT) == "hi"
        assert (await plugins.outgoing("hi", CONTEXT)).text == "hi"
    assert status(plugins, "half").state is PluginState.STOPPED
    await plugins.close()


async def test_a_slow_hook_holds_up_only_its_own_mail(tmp_path: Path) -> None:
    source = """
        import threading
        gate, seen = threading.Event(), threading.Event()
        def transform_incoming(text, context):
            if text == "slow":
                seen.set()
                gate.wait(20)
            else:
                seen.wait(20)
                gate.set()
            return text
        """
    write(tmp_path, "slow.py", source)
    plugins = await opened(tmp_path, "slow", timeout_s=30)
    both = await asyncio.gather(plugins.incoming("slow", CONTEXT), plugins.incoming("quick", CONTEXT))
    assert both == ["slow", "quick"]
    assert status(plugins, "slow").failures == 0
    await plugins.close()


async def test_what_a_plugin_prints_is_no_part_of_the_mail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = """
        import sys
        def transform_incoming(text, context):
            print("noise")
            print("more noise", file=sys.stderr)
            return text
        """
    write(tmp_path, "noisy.py", source)
    plugins = await opened(tmp_path, "noisy")
    assert await plugins.incoming("hi", CONTEXT) == "hi"
    assert "noise" in capsys.readouterr().out
    await plugins.close()


async def test_log_and_home_are_there_for_plugins(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = """
        def activate(plugin):
            plugin.log("warn", f"{plugin.name} in {plugin.home}")
            plugin.on("x", lambda event: None)
        """
    write(tmp_path, "talks.py", source)
    plugins = await opened(tmp_path, "talks")
    assert f"[plugin:talks] talks in {tmp_path}" in caplog.text
    assert status(plugins, "talks").events == ("x",)
    await plugins.close()


def test_metadata_that_has_no_room_is_left_out() -> None:
    small: dict[str, Any] = {"parseMode": "HTML"}
    assert fitting(small, {"thread": 3}) == small
    assert fitting(small, {"x": "x" * 62_000}) == {}
