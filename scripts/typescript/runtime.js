// What every method of the client stands on: one request, and what a refusal is.

export class PostroomError extends Error {
  constructor(status, error) {
    super(error.message ?? "no reason was given");
    this.name = "PostroomError";
    this.status = status;
    this.code = error.code ?? "HTTP_ERROR";
    this.details = error.details ?? [];
    this.retryAfter = error.retry_after ?? null;
  }
}

class Connection {
  constructor(url, key, { tenant, fetch: send = fetch } = {}) {
    this._url = url.replace(/\/+$/, "");
    this._send = send;
    this._headers = { authorization: `Bearer ${key}`, ...(tenant && { "x-postroom-tenant": tenant }) };
  }

  async _open(method, path, query, body, signal) {
    const asked = new URL(this._url + path);
    for (const [name, value] of Object.entries(query ?? {}))
      if (value !== undefined && value !== null) asked.searchParams.set(name, String(value));
    const headers = { ...this._headers, ...(body !== undefined && { "content-type": "application/json" }) };
    const answer = await this._send(asked, { method, headers, signal, body: JSON.stringify(body) });
    if (answer.ok) return answer;
    const said = await answer.json().catch(() => ({}));
    throw new PostroomError(answer.status, said?.error ?? {});
  }

  async request(method, path, { query, body, signal } = {}) {
    const answer = await this._open(method, path, query, body, signal);
    return answer.status === 204 ? undefined : answer.json();
  }

  async *events(path, { query, signal } = {}) {
    const answer = await this._open("GET", path, query, undefined, signal);
    let rest = "";
    for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
      const frames = (rest + text).split(/\r?\n\r?\n/);
      rest = frames.pop();
      for (const frame of frames) {
        const lines = frame.split(/\r?\n/);
        const read = (name) =>
          lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart());
        const data = read("data");
        if (data.length) yield { event: read("event")[0] ?? "message", data: JSON.parse(data.join("\n")) };
      }
    }
  }
}

function step(name, value) {
  const text = String(value);
  if (["", ".", ".."].includes(text)) throw new TypeError(`${name}: "${text}" is no name`);
  return encodeURIComponent(text);
}
