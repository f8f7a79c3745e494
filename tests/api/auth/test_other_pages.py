"""A page of another origin in a real browser: whatever it tries, it reads nothing and changes nothing.

The house is as open as it can be (`api.auth` is `loopback`: no token from this machine), so that only the
checks of host and origin stand between the page and the office.
"""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, opened
from tests.loopback import serving

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no browser")

PAGE = """<!doctype html><title>another page</title><body><script>
const office = OFFICE, told = {};
async function attempt(name, work) {
  const late = new Promise((_, no) => setTimeout(no, 5000, "late"));
  try { told[name] = String(await Promise.race([work(), late])); }
  catch (error) { told[name] = "refused"; }
}
const json = {"content-type": "application/json"};
const mail = JSON.stringify({message: "@coder forged", channel: "web"});
const read = (path, more) => async () => (await fetch(office + path, more)).text();
function loads(tag, path) {
  return () => new Promise((yes, no) => {
    const element = document.createElement(tag);
    element.onload = () => yes("loaded"); element.onerror = no; element.src = office + path;
    document.body.append(element);
  });
}
function listens() {
  return new Promise((yes, no) => {
    const source = new EventSource(office + "/api/events/stream");
    source.addEventListener("connected", event => yes(event.data)); source.onerror = no;
  });
}
function posts() {
  const form = document.createElement("form"), frame = document.createElement("iframe");
  frame.name = "hidden"; document.body.append(frame, form);
  form.method = "post"; form.enctype = "text/plain"; form.target = "hidden";
  form.action = office + "/api/message";
  const field = document.createElement("input");
  field.name = '{"message": "@coder forged", "x": "'; field.value = '"}'; form.append(field);
  form.submit();
  return new Promise(yes => frame.onload = () => {
    try { yes(frame.contentDocument.body.innerText); } catch (error) { yes("closed"); }
  });
}
(async () => {
  await attempt("read", read("/api/agents"));
  await attempt("read with cookies", read("/api/settings", {credentials: "include"}));
  await attempt("post", read("/api/message", {method: "POST", headers: json, body: mail}));
  await attempt("simple post", read("/api/message", {method: "POST", mode: "no-cors", body: mail}));
  await attempt("delete", read("/api/agents/coder", {method: "DELETE"}));
  await attempt("restart", read("/api/services/restart", {method: "POST", mode: "no-cors"}));
  await attempt("events", listens);
  await attempt("form", posts);
  await attempt("script", loads("script", "/home.js"));
  await attempt("image", loads("img", "/api/queue/status"));
  await attempt("tools", read("/mcp", {method: "POST", headers: json, body: "{}"}));
  await fetch("/report", {method: "POST", body: JSON.stringify(told)});
})();
</script>"""


@dataclass
class Stranger:
    """A web server of somebody else's, which hears what its page has seen."""

    page: str = ""
    port: int = 0
    told: asyncio.Future[dict[str, Any]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if head.startswith("post /report"):
            length = int(head.split("content-length:")[1].split()[0])
            self.told.set_result(json.loads(await reader.readexactly(length)))
        body = self.page.encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n"
            + f"content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()


@asynccontextmanager
async def stranger() -> AsyncIterator[Stranger]:
    one = Stranger()
    async with serving(one.serve) as one.port:
        yield one


@asynccontextmanager
async def browsing(folder: Path, url: str, *more: str) -> AsyncIterator[asyncio.subprocess.Process]:
    assert BROWSER is not None
    process = await asyncio.create_subprocess_exec(
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={folder / 'browser'}",
        *more,
        url,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


@asynccontextmanager
async def open_house(folder: Path) -> AsyncIterator[House]:
    async with opened(folder, works=False, api={"auth": "loopback"}) as house, house.stranger() as tool:
        assert (await tool.get("/api/agents")).status_code == 200, "without a token, from this machine"
        yield house


async def untouched(house: House) -> None:
    assert (await house.http.get("/api/queue/status")).json()["incoming"] == 0
    assert "coder" in (await house.http.get("/api/agents")).json()


# Another port is another origin; another name too, even if it leads to this machine.
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "evil.example"])
async def test_a_page_of_another_origin_reads_nothing_and_changes_nothing(tmp_path: Path, name: str) -> None:
    async with open_house(tmp_path) as house, stranger() as other:
        other.page = PAGE.replace("OFFICE", json.dumps(house.url))
        address = f"http://{name}:{other.port}/"
        async with browsing(tmp_path, address, "--host-resolver-rules=MAP evil.example 127.0.0.1"):
            async with asyncio.timeout(120):
                told = await other.told
        # A request that asks for no answer is sent, and gets none; a form's answer stays closed to the page.
        blind = {"simple post": {"", "refused"}, "restart": {"", "refused"}, "form": {"closed", "refused"}}
        for attempt, seen in told.items():
            assert seen in blind.get(attempt, {"refused"}), attempt
        assert len(told) == 11
        await untouched(house)


async def test_a_name_that_leads_to_this_machine_by_a_trick_is_refused_to_the_browser(tmp_path: Path) -> None:
    """DNS rebinding: for the browser it is the page's own origin, so only the name can give it away."""
    async with open_house(tmp_path) as house:
        port = house.url.rpartition(":")[2]
        address = f"http://evil.example:{port}/api/settings"
        rules = "--host-resolver-rules=MAP evil.example 127.0.0.1"
        async with browsing(tmp_path, address, rules, "--dump-dom") as browser:
            assert browser.stdout is not None
            async with asyncio.timeout(120):
                shown = (await browser.stdout.read()).decode()
        assert "HOST_NOT_ALLOWED" in shown
        assert "workspace" not in shown
        await untouched(house)
