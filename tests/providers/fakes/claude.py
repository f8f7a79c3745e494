"""A fake of Claude Code 2.1: `claude -p --output-format stream-json --verbose …`."""

import os
import sys
import uuid
from typing import Any

from stage import Options, Stage

FLAGS = {
    "-p",
    "--verbose",
    "--include-partial-messages",
    "--dangerously-skip-permissions",
    "--strict-mcp-config",
    "-c",
}
VALUED = {
    "--output-format",
    "--input-format",
    "--session-id",
    "--resume",
    "--model",
    "--append-system-prompt-file",
    "--permission-mode",
    "--max-budget-usd",
}
# word: (api_error_status, text of the result, `error` of the retries, exit code)
API_ERRORS: dict[str, tuple[int | None, str, str]] = {
    "e400": (400, "API Error: 400 messages: bad", "unknown"),
    "e401": (401, "Invalid API key · Fix external API key", "authentication_failed"),
    "e429": (429, "API Error: 429 slow down", "rate_limit"),
    "limit": (429, "Claude AI usage limit reached|1800003600", "rate_limit"),
    "session-limit": (429, "You've hit your session limit · resets 9am (UTC)", "rate_limit"),
    "e500": (500, "API Error: 500 internal", "server_error"),
    "e529": (529, "API Error: 529 Overloaded", "overloaded"),
    "refused-connection": (None, "API Error: Connection error.", "unknown"),
    "too-long": (400, "Prompt is too long · try /compact", "unknown"),
    "credit": (400, "Credit balance is too low", "unknown"),
    "no-model": (404, "There's an issue with the selected model (x). It may not exist or …", "unknown"),
    "max-tokens": (None, "API Error: Claude's response exceeded the 64000 output token maximum.", "unknown"),
    "no-login": (None, "Not logged in · Please run /login", "unknown"),
}
RETRIED = ("e401", "e429", "e500", "e529", "refused-connection")


class FakeClaude(Stage):
    def main(self) -> None:
        options = Options(FLAGS, VALUED, {"--mcp-config", "--allowedTools", "--disallowedTools"})
        if unknown := options.parse(self.arguments):
            self.complain(f"error: unknown option '{unknown}'", 1)
        if options.get("--output-format") == "stream-json" and not options.has("--verbose"):
            self.complain("Error: When using --print, --output-format=stream-json requires --verbose", 1)
        if (
            options.has("--dangerously-skip-permissions")
            and os.geteuid() == 0
            and not os.environ.get("IS_SANDBOX")
        ):
            self.complain("--dangerously-skip-permissions cannot be used with root/sudo privileges", 1)
        self.read_prompt()
        self.misbehave_first()
        self.model = options.get("--model") or "claude-opus-4-8"
        self.partial = options.has("--include-partial-messages")
        self.session = self.choose_session(options)
        self.play()
        self.misbehave_last()
        # What came too late for the turn is another one of the same run; the end of stdin ends the run.
        while late := self.read_input():
            self.prompt = late
            self.answers += 1
            self.play()
        self.leave(1 if self.failed else 0)

    failed = False
    answers = 1

    def read_input(self) -> str:
        """One message a line: the turn begins with the first, while stdin is still open."""
        return sys.stdin.buffer.readline().decode()

    def choose_session(self, options: Options) -> str:
        asked, chosen = options.get("--resume"), options.get("--session-id")
        known = self.sessions()
        if asked and known.get(asked) != os.getcwd():
            said = f"No conversation found with session ID: {asked}"
            self.say(
                self.result(
                    "error_during_execution", True, num_turns=0, errors=[said], modelUsage={}, usage={}
                )
            )
            self.complain(said, 1)
        if chosen and chosen in known:
            self.complain(f"Error: Session ID {chosen} is already in use.", 1)
        session = asked or chosen or str(uuid.uuid4())
        self.keep_session(session, os.getcwd())
        return session

    def play(self) -> None:
        servers = [{"name": "broken", "status": "failed"}] if self.does("broken-tools") else []
        if not self.does("only-result"):
            self.say(
                self.line("system", subtype="init", cwd=os.getcwd(), model=self.model, mcp_servers=servers)
            )
        self.misbehave_midway()
        for word, (status, text, error) in API_ERRORS.items():
            if self.does(word):
                self.fail(word, status, text, error)
                return
        if self.does("e403"):
            self.forbidden()
        elif self.does("refusal"):
            self.failed = True
            self.say(self.line("system", subtype="model_refusal_no_fallback"))
            self.say(self.result("success", True, result="API Error: refused", stop_reason="refusal"))
        elif self.does("max-turns"):
            self.failed = True
            self.say(self.result("error_max_turns", True, errors=["Reached maximum number of turns (2)"]))
        elif self.does("budget"):
            self.failed = True
            self.say(self.result("error_max_budget_usd", True, errors=["Reached maximum budget ($0.01)"]))
        elif self.does("long-wait"):
            self.say(self.retry(429, "rate_limit", delay=3_600_000.0))
            self.hang()
        else:
            self.succeed()

    def succeed(self) -> None:
        if self.does("retry"):
            self.say(self.retry(529, "overloaded"), self.retry(529, "overloaded", attempt=2))
        if self.does("tool"):
            self.use_tool()
        if self.does("steered"):
            # Between two tools it takes up what has been written meanwhile.
            self.use_tool()
            self.prompt += self.read_input()
        text = self.answer()
        if text and not self.does("only-result"):
            self.stream(text)
            self.say(self.assistant([{"type": "text", "text": text}]))
        denials = []
        if self.does("denied"):
            given = {"command": "curl http://127.0.0.1:9/", "description": "as asked"}
            denials = [{"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": given}]
        self.say(self.result("success", False, result=text, permission_denials=denials))

    def use_tool(self) -> None:
        self.stream("I will run a command.")
        self.say(self.assistant([{"type": "text", "text": "I will run a command."}]))
        use = {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "Bash",
            "input": {"command": "echo hello-from-tool"},
        }
        self.say(self.assistant([use]))
        done = {
            "tool_use_id": "toolu_1",
            "type": "tool_result",
            "content": "hello-from-tool",
            "is_error": False,
        }
        self.say(self.line("user", message={"role": "user", "content": [done]}, parent_tool_use_id=None))
        sub = {"type": "text", "text": "words of a sub-agent"}
        self.say({**self.assistant([sub]), "parent_tool_use_id": "toolu_0"})

    def stream(self, text: str) -> None:
        if not self.partial:
            return
        half = len(text) // 2
        start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        deltas = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in (text[:half], text[half:])
        ]
        for event in (start, *deltas):
            self.say(self.line("stream_event", event=event, parent_tool_use_id=None))

    def fail(self, word: str, status: int | None, text: str, error: str) -> None:
        self.failed = True
        if word in RETRIED:
            self.say(self.retry(status, error))
        if self.does("limit-event"):
            info = {"status": "rejected", "resetsAt": 1_800_007_200, "rateLimitType": "five_hour"}
            self.say(self.line("rate_limit_event", rate_limit_info=info))
        synthetic = {"model": "<synthetic>", "role": "assistant", "content": [{"type": "text", "text": text}]}
        self.say(self.line("assistant", message=synthetic, error=error))
        self.say(self.result("success", True, result=text, api_error_status=status))

    def forbidden(self) -> None:
        self.failed = True
        text = "Failed to authenticate. API Error: 403 forbidden for sk-ant-secret-0123456789"
        synthetic = {"model": "<synthetic>", "role": "assistant", "content": [{"type": "text", "text": text}]}
        self.say(self.line("assistant", message=synthetic, error="authentication_failed"))
        self.say(self.result("success", True, result=text, api_error_status=403))

    def line(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": kind, **fields, "session_id": self.session, "uuid": "u"}

    def retry(
        self, status: int | None, error: str, attempt: int = 1, delay: float = 604.96
    ) -> dict[str, Any]:
        return self.line(
            "system",
            subtype="api_retry",
            attempt=attempt,
            max_retries=10,
            retry_delay_ms=delay,
            error_status=status,
            error=error,
        )

    def assistant(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
        }
        return self.line("assistant", message=message, parent_tool_use_id=None)

    def result(self, subtype: str, is_error: bool, **fields: Any) -> dict[str, Any]:
        usage = {"input_tokens": 2460, "cache_creation_input_tokens": 600, "cache_read_input_tokens": 1800}
        main = {
            "inputTokens": 2460 * self.answers,
            "outputTokens": 50 * self.answers,
            "cacheReadInputTokens": 1800 * self.answers,
            "cacheCreationInputTokens": 600 * self.answers,
            "costUSD": 0.0182 * self.answers,
        }
        tokens, cost = {"inputTokens": 10, "outputTokens": 5}, 0.0001
        small = {
            **{name: count * self.answers for name, count in tokens.items()},
            "costUSD": cost * self.answers,
        }
        models = {"claude-opus-4-8[1m]": main, "claude-haiku-4-5": small}
        return {
            "type": "result",
            "subtype": subtype,
            "is_error": is_error,
            "api_error_status": None,
            "num_turns": 2,
            "stop_reason": "end_turn",
            "session_id": getattr(self, "session", "none"),
            "total_cost_usd": 0.0183 * self.answers,
            "usage": {**usage, "output_tokens": 50},
            "modelUsage": {} if self.does("no-model-usage") else models,
            "permission_denials": [],
            **fields,
        }


if __name__ == "__main__":
    FakeClaude("claude", sys.argv[1:]).main()
