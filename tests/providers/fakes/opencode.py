"""A fake of OpenCode 1.18: `opencode run --format json …`, several steps a turn, no closing event."""

import os
import sys
import uuid
from typing import Any

from stage import Options, Stage

VALUED = {"--format", "--model", "--title", "--session", "--agent", "--dir"}
API_ERRORS: dict[str, tuple[int, str, bool, dict[str, str], str]] = {
    "e400": (400, "bad request", False, {}, ""),
    "e401": (401, "Incorrect API key provided: fake.", False, {}, ""),
    "e404": (404, "no such model", False, {}, ""),
    "e429": (429, "Too Many Requests", True, {"Retry-After": "30"}, ""),
    "quota": (429, "Too Many Requests", True, {}, '{"error":{"code":"insufficient_quota"}}'),
    "e500": (500, "Internal Server Error", True, {}, ""),
    "e503": (503, "Service Unavailable", True, {}, ""),
    "e529": (529, "Overloaded", True, {}, ""),
}


class FakeOpenCode(Stage):
    def main(self) -> None:
        if self.arguments[:1] != ["run"]:
            self.complain("opencode: help text", 1)
        options = Options({"--auto", "-c"}, VALUED)
        if unknown := options.parse(self.arguments[1:]):
            self.complain(f"opencode run [message..]\n\nunknown option {unknown}", 1)
        with open(os.environ["OPENCODE_CONFIG"]) as file, open(f"{self.state}/opencode.json", "w") as copy:
            copy.write(file.read())
        self.read_prompt()
        self.misbehave_first()
        if not self.prompt:
            self.complain("You must provide a message or a command", 1)
        self.choose_session(options)
        self.play()
        self.misbehave_last()

    def choose_session(self, options: Options) -> None:
        asked, folder = options.get("--session"), options.get("--dir") or os.getcwd()
        known = self.sessions()
        if asked and asked not in known:
            self.complain("\x1b[91m\x1b[1mError: \x1b[0mSession not found", 1)
        if asked and known[asked] != folder:
            self.hang()
        self.session = asked or f"ses_{uuid.uuid4().hex}"
        self.keep_session(self.session, folder)

    def play(self) -> None:
        if self.does("unknown-model"):
            self.error("UnknownError", {"message": "Unexpected server error. Check server logs for details."})
        if self.does("overflow"):
            self.error(
                "ContextOverflowError", {"message": "Input exceeds context window of this model"}, times=2
            )
        for word, (status, message, retryable, headers, body) in API_ERRORS.items():
            if self.does(word):
                self.error(
                    "APIError",
                    {
                        "message": message,
                        "statusCode": status,
                        "isRetryable": retryable,
                        "responseHeaders": headers,
                        "responseBody": body,
                    },
                )
        self.say(self.part("step_start", "step-start"))
        self.misbehave_midway()
        if self.does("retry"):
            self.say(self.part("step_start", "step-start"))
        if self.does("denied"):
            state = {
                "status": "error",
                "input": {},
                "error": "The user rejected permission to use this tool call.",
            }
            self.say(self.part("tool_use", "tool", tool="bash", callID="call_1", state=state))
            self.say(self.finish("tool-calls"))
            sys.stderr.write("permission requested: bash (rm); auto-rejecting\n")
            self.leave(0)
        if self.does("unavailable"):
            asked = {
                "tool": "bash",
                "error": "Model tried to call unavailable tool 'bash'. Available tools: edit.",
            }
            state = {"status": "completed", "input": asked, "output": "invalid", "title": "Invalid Tool"}
            self.say(self.part("tool_use", "tool", tool="invalid", callID="call_1", state=state))
            self.say(self.finish("tool-calls"), self.part("step_start", "step-start"))
        if self.does("tool"):
            self.say(self.part("text", "text", text="I will run a command."))
            state = {
                "status": "completed",
                "input": {"command": "echo hi"},
                "output": "hi",
                "title": "echo hi",
            }
            self.say(self.part("tool_use", "tool", tool="bash", callID="call_1", state=state))
            self.say(self.finish("tool-calls"), self.part("step_start", "step-start"))
        if text := self.answer():
            self.say(self.part("text", "text", text=text))
        reason = "length" if self.does("length") else "content-filter" if self.does("filtered") else "stop"
        self.say(self.finish(reason))
        if self.does("one-more"):
            self.say(self.part("step_start", "step-start"), self.part("text", "text", text="one more"))
            self.say(self.finish("stop"))

    def error(self, name: str, data: dict[str, Any], times: int = 1) -> None:
        for _ in range(times):
            self.say(
                {
                    "type": "error",
                    "timestamp": 1,
                    "sessionID": self.session,
                    "error": {"name": name, "data": data},
                }
            )
        self.misbehave_last()
        self.leave(1)

    def part(self, event: str, kind: str, **fields: Any) -> dict[str, Any]:
        part = {"id": "prt_1", "messageID": "msg_1", "sessionID": self.session, "type": kind, **fields}
        return {"type": event, "timestamp": 1, "sessionID": self.session, "part": part}

    def finish(self, reason: str) -> dict[str, Any]:
        tokens = {
            "total": 1225,
            "input": 300,
            "output": 20,
            "reasoning": 5,
            "cache": {"write": 0, "read": 900},
        }
        cost = 0 if self.does("free") else 0.00044
        return self.part("step_finish", "step-finish", reason=reason, tokens=tokens, cost=cost)


if __name__ == "__main__":
    FakeOpenCode("opencode", sys.argv[1:]).main()
