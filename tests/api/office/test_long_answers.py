"""An answer that is too long for a chat is whole in the history; one that its model cut says so."""

from pathlib import Path

from tests.api.house import document, opened
from tests.providers.model_server import model_server


async def test_the_history_gives_a_long_answer_whole(tmp_path: Path) -> None:
    answer = "begin " + "word " * 3000 + "end"
    script = {"rules": [{"match": "LONG", "reply": answer}]}
    async with opened(tmp_path, script=script) as house:
        sent = {"message": "LONG please", "agent": "coder", "channel": "web", "sender": "Ann"}
        assert (await house.http.post("/api/message", json=sent)).status_code == 200
        rows = await house.until(
            "/api/agents/coder/messages", lambda found: any(row["role"] == "assistant" for row in found)
        )
        [said] = [row["content"] for row in rows if row["role"] == "assistant"]
        assert said == answer
        [response] = (await house.http.get("/api/responses")).json()
        assert len(response["message"]) < len(answer), "a chat gets its beginning, and a file"
        assert len(response["files"]) == 1


async def test_an_answer_cut_by_the_models_token_limit_says_so(tmp_path: Path) -> None:
    async with model_server() as server:
        models = {"openai": {"model": "m", "api_key": "k", "base_url": server.scenario("length", "/v1")}}
        agents = document(tmp_path)["agents"]
        agents["coder"] |= {"provider": "openai_api", "model": "m"}
        async with opened(tmp_path, models=models, agents=agents) as house:
            sent = {"message": "hello", "agent": "coder", "channel": "web", "sender": "Ann"}
            assert (await house.http.post("/api/message", json=sent)).status_code == 200
            [response] = await house.until("/api/responses", bool)
    assert response["message"].startswith("Hello from the fake — model.")
    assert "it reached the longest one the model may write" in response["message"]
