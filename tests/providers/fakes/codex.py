"""A fake of Codex 0.166: `codex exec [resume ID] --json -`, with usage that counts up over the thread."""

import os
import sys
import time
import uuid
from typing import Any

from stage import Options, Stage

EXEC_VALUED = {"--sandbox", "--profile", "-m", "-c"}
RESUME_VALUED = {"-m", "-c"}
FLAGS = {"--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox"}
URL = "url: http://127.0.0.1:9100/v1/responses"
FAILURES = {
    "e400": '{"error":{"message":"Unsupported value","type":"invalid_request_error","code":null}}',
    "e401": f"unexpected status 401 Unauthorized: Incorrect API key: sk-proj-0123456789abcdef., {URL}",
    "e403": f"unexpected status 403 Forbidden: no, {URL}",
    "e404": "The model `x` does not exist or you do not have access to it.",
    "e429": "exceeded retry limit, last status: 429 Too Many Requests",
    "limit": "You've hit your usage limit. Upgrade to Pro, or try again in 1 day 3 hours 5 minutes.",
    "e500": "We’re currently experiencing high demand, which may cause temporary errors.",
    "e503": f"unexpected status 503 Service Unavailable: later, {URL}",
    "quota": "Quota exceeded. Check your plan and billing details.",
    "capacity": "Selected model is at capacity. Please try a different model.",
    "context": (
        "Codex ran out of room in the model's context window. Start a new thread or clear earlier history"
        " before retrying."
    ),
    "context-400": '{"error":{"message":"Too many tokens","type":"x","code":"context_length_exceeded"}}',
    "max-tokens": "Incomplete response returned, reason: max_output_tokens",
    "filtered": "Incomplete response returned, reason: content_filter",
    "cut": "stream disconnected before completion: error decoding response body",
    "no-key": "Missing environment variable: `OPENAI_API_KEY`.",
}
RETRIED = ("e401", "e429", "e503", "cut")


class FakeCodex(Stage):
    def main(self) -> None:
        thread = self.parse()
        home = os.environ.get("CODEX_HOME") or os.path.join(os.environ["HOME"], ".codex")
        if not os.path.isfile(f"{home}/{self.profile}.config.toml"):
            self.complain(f"Error: config profile `{self.profile}` not found", 1)
        with (
            open(f"{home}/{self.profile}.config.toml") as file,
            open(f"{self.state}/profile.toml", "w") as copy,
        ):
            copy.write(file.read())
            with open(f"{self.state}/profile.mode", "w") as mode:
                mode.write(str(os.fstat(file.fileno()).st_mode))
        self.read_prompt()
        self.misbehave_first()
        if not self.prompt:
            self.complain("No prompt provided via stdin.", 1)
        if thread and thread not in self.sessions():
            what = f"no rollout found for thread id {thread} (code -32600)"
            self.complain(f"Error: thread/resume: thread/resume failed: {what}", 1)
        self.thread = str(uuid.uuid4()) if self.does("other-thread") or not thread else thread
        self.play()
        self.misbehave_last()

    def parse(self) -> str | None:
        if self.arguments[:1] != ["exec"]:
            self.complain("error: unrecognized subcommand", 2)
        arguments = self.arguments[1:]
        resume = "resume" in arguments
        outer = arguments[: arguments.index("resume")] if resume else arguments
        inner = arguments[arguments.index("resume") + 1 :] if resume else []
        options, rest = Options(FLAGS, EXEC_VALUED), Options(FLAGS, RESUME_VALUED)
        unknown = options.parse(outer) or rest.parse(inner)
        if unknown:
            self.complain(f"error: unexpected argument '{unknown}' found", 2)
        self.profile = options.get("--profile") or "none"
        words = rest.rest if resume else options.rest
        if words[-1:] != ["-"]:
            self.complain("error: the prompt must come from stdin", 2)
        return words[0] if resume else None

    def play(self) -> None:
        self.say({"type": "thread.started", "thread_id": self.thread})
        if self.does("other-thread"):
            self.hang()
        note = "Model metadata for `fake-model` not found. Defaulting to fallback metadata; …"
        self.say({"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": note}})
        self.misbehave_midway()
        if self.does("offline"):
            while True:
                self.say(
                    {
                        "type": "error",
                        "message": "Reconnecting... waiting for network (error sending request)",
                    }
                )
                time.sleep(0.02)
        self.say({"type": "turn.started"})
        for word, message in FAILURES.items():
            if self.does(word):
                self.fail(word, message)
        if self.does("only-error"):
            self.say({"type": "error", "message": FAILURES["e401"]})
            self.leave(1)
        if self.does("retry"):
            self.say({"type": "error", "message": "Reconnecting... 1/5 (stream disconnected)"})
        if self.does("denied"):
            shell = {"command": "/bin/bash -lc 'echo hi > /etc/made.txt'", "exit_code": 1, "status": "failed"}
            shell["aggregated_output"] = "/bin/bash: line 1: /etc/made.txt: Read-only file system\n"
            self.say(self.item("command_execution", "item_3", **shell))
        if self.does("tool"):
            self.use_tools()
        text = self.answer()
        self.say(self.item("agent_message", "item_9", text=text))
        self.say({"type": "turn.completed", "usage": self.usage()})

    def fail(self, word: str, message: str) -> None:
        if word in RETRIED:
            self.say({"type": "error", "message": f"Reconnecting... 1/5 ({message})"})
        self.say({"type": "error", "message": message})
        self.say({"type": "turn.failed", "error": {"message": message}})
        self.misbehave_last()
        self.leave(1)

    def use_tools(self) -> None:
        self.say(self.item("reasoning", "item_1", text="I think"))
        self.say(self.item("agent_message", "item_2", text="I will run a command."))
        shell = {"command": "/bin/bash -lc 'echo hi'", "aggregated_output": "", "exit_code": None}
        started = self.item("command_execution", "item_3", **shell, status="in_progress")
        self.say({**started, "type": "item.started"})
        self.say(self.item("command_execution", "item_3", **{**shell, "exit_code": 3}, status="failed"))
        changes = [{"path": "/w/x/hello.txt", "kind": "add"}]
        self.say(self.item("file_change", "item_4", changes=changes, status="completed"))
        call = {"server": "echo", "tool": "say", "arguments": {"text": "hi"}, "status": "completed"}
        self.say(self.item("mcp_tool_call", "item_5", **call))

    def item(self, kind: str, number: str, **fields: Any) -> dict[str, Any]:
        return {"type": "item.completed", "item": {"id": number, "type": kind, **fields}}

    def usage(self) -> dict[str, int]:
        turns = self.sessions().get(self.thread, 0) + 1
        self.keep_session(self.thread, turns)
        return {
            "input_tokens": 1220 * turns,
            "cached_input_tokens": 900 * turns,
            "cache_write_input_tokens": 0,
            "output_tokens": 25 * turns,
            "reasoning_output_tokens": 5 * turns,
        }


if __name__ == "__main__":
    FakeCodex("codex", sys.argv[1:]).main()
