"use strict";

const csrf = document.querySelector("meta[name=csrf]").content;
const byId = (id) => document.getElementById(id);

const post = (path, body) =>
  fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
    body: JSON.stringify(body),
  });

async function refresh() {
  const answer = await fetch("/api/queue/status");
  if (!answer.ok) return;
  const list = byId("status");
  list.replaceChildren();
  for (const [name, count] of Object.entries(await answer.json())) {
    const pair = document.createElement("div");
    const term = document.createElement("dt");
    const value = document.createElement("dd");
    term.textContent = name === "activeConversations" ? "conversations" : name;
    value.textContent = count;
    pair.append(term, value);
    list.append(pair);
  }
}

function tell(text) {
  const line = document.createElement("li");
  line.textContent = text;
  byId("events").prepend(line);
  while (byId("events").children.length > 50) byId("events").lastChild.remove();
}

byId("write").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await post("/api/message", { message: byId("message").value, channel: "web", sender: "Web" });
  const body = await answer.json();
  byId("told").textContent = answer.ok ? "Sent." : body.error;
  if (answer.ok) byId("message").value = "";
  refresh();
});

byId("leave").addEventListener("submit", async (event) => {
  event.preventDefault();
  await post("/logout", {});
  location.assign("/login");
});

const events = new EventSource("/api/events/stream");
for (const name of ["message:incoming", "agent:invoke", "agent:mention", "message:done"]) {
  events.addEventListener(name, (event) => {
    const data = JSON.parse(event.data);
    const who = data.agentId || data.agent || data.fromAgent || "";
    tell(`${name} @${who} ${data.message || data.responseText || data.toAgent || ""}`);
    refresh();
  });
}
refresh();
setInterval(refresh, 5000);
