// One round of the TypeScript client. It is also plain JavaScript: Node runs it as it stands.
import { Client } from "postroom";

const [url, key] = process.argv.slice(2);
const client = new Client(url, key);
await client.createScope({ slug: "shop" });
await client.createQueue("shop", { slug: "orders", ordering: "priority" });
const sent = await client.publishMessage("shop", "orders", { body: { order: 1 }, labels: { tier: "basic" } });
const claimed = (await client.claim("shop", "orders", { batch_size: 5, wait_s: 1 })).data[0];
const claim = { claim_token: claimed.claim_token, result: { paid: true } };
const done = await client.complete("shop", claimed.id, claim);
const page = await client.listScopeMessages("shop", { state: "completed", limit: 1 });

const stream = (await client.openStream("shop", { queue_id: "orders" })).data.id;
const chunks = [
  { sequence: 0, data: "Grüße " },
  { sequence: 1, data: "📮" },
];
await client.appendChunks("shop", stream, { chunks });
await client.closeStream("shop", stream);
const parts = new Array();
for await (const each of client.followStream("shop", stream)) parts.push(each.event, each.data.data ?? "");

await client.createQueue("shop", { slug: "spare" });
const gone = await client.deleteQueue("shop", "spare");

const refusals = new Array();
const mistakes = [
  async () => void (await client.publishMessage("shop", "nowhere", { body: 1 })),
  async () => void (await client.createQueue("shop", { slug: "x", max_retries: -1 })),
  async () => void (await client.readScope("..")),
];
for (const each of mistakes)
  await each().catch((error) => refusals.push([error.name, error.status, error.code, error.details?.length]));
const same = sent.data.id === claimed.id;
console.log(JSON.stringify({ same, state: done.data.state, page, parts, gone: gone === undefined, refusals }));
