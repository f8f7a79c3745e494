"use strict";
// What a page does by itself: it keeps what is live fresh, sends forms, and listens to the keyboard. All facts come
// from the server; nothing is kept here that a reload would lose.

const root = document.documentElement;
const csrf = document.querySelector("meta[name=csrf]").content;
const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
const typing = () => /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");

// notices

function notify(text, bad = false) {
  const notice = document.createElement("div");
  notice.className = bad ? "notice bad" : "notice";
  notice.textContent = text;
  $("#notices").append(notice);
  setTimeout(() => notice.remove(), bad ? 9000 : 4000);
}

// live parts

function copyAttributes(from, to) {
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
}

// Changes `from` into `to` and leaves alone what is the same: focus, open parts and half-typed words stay.
function morph(from, to) {
  if (from.isEqualNode(to)) return;
  const same = from.nodeType === to.nodeType && from.nodeName === to.nodeName && (from.id ?? "") === (to.id ?? "");
  if (!same) return from.replaceWith(to);
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  const open = from.tagName === "DETAILS" && from.open;
  copyAttributes(from, to);
  if (open) from.open = true;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(from.tagName)) return;
  const known = new Map($$(":scope > [id]", from).map((each) => [each.id, each]));
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const kept = wanted.id ? known.get(wanted.id) : null;
    if (kept && kept !== at) from.insertBefore(kept, at), (at = kept);
    else if (wanted.id && !kept) {
      from.insertBefore(wanted, at);
      continue;
    }
    if (!at) from.append(wanted);
    else {
      const next = at.nextSibling;
      if (!wanted.id && at.id) {
        from.insertBefore(wanted, at);
        continue;
      }
      morph(at, wanted);
      at = next;
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

let busy = false;
let sending = 0;
let stale = false;
const pulse = $("#pulse");

function setPulse(state, text) {
  if (!pulse || pulse.dataset.state === state) return;
  pulse.dataset.state = state;
  $("span", pulse).textContent = text;
}

// What changes without an event in the ledger is asked for again after the time it names.
let again = 0;

function planAgain() {
  clearTimeout(again);
  const part = $("[data-again]");
  if (part) again = setTimeout(refresh, Number(part.dataset.again));
}

async function refresh() {
  if (!$("[data-live]")) return;
  if (busy || sending || document.hidden || root.dataset.paused) return void (stale = true);
  busy = true;
  stale = false;
  try {
    const answer = await fetch(location.href, { headers: { "X-Live": "1", Accept: "text/html" } });
    if (answer.redirected) return location.assign(answer.url);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const lines = $(".lines");
    const atEnd = lines && lines.scrollHeight - lines.scrollTop - lines.clientHeight < 80;
    for (const part of $$("[data-live]")) {
      const fresh = page.getElementById(part.id);
      if (fresh) morph(part, document.adoptNode(fresh));
    }
    if (atEnd) lines.scrollTop = lines.scrollHeight;
    document.title = page.title;
  } catch {
    stale = true; // the server is away; the stream says when it is back
  } finally {
    busy = false;
    planAgain();
    if (stale) setTimeout(refresh, 1000);
  }
}

planAgain();

if (pulse) {
  // What happened between the making of this page and now is told at once.
  const seen = document.body.dataset.seen;
  const stream = new EventSource(seen ? `/portal/pulse?seen=${seen}` : "/portal/pulse");
  let lost = false;
  stream.addEventListener("open", () => {
    if (!root.dataset.paused) setPulse("live", "Live");
    if (lost) refresh();
    lost = false;
  });
  stream.addEventListener("error", () => {
    lost = true;
    setPulse("lost", "Reconnecting…");
  });
  stream.addEventListener("message", refresh);
  document.addEventListener("visibilitychange", () => stale && refresh());
  addEventListener("pagehide", () => stream.close());
}

// forms: sent with the word that only our own pages know

async function send(form, submitter) {
  const question = submitter?.dataset.confirm ?? form.dataset.confirm;
  if (question && !(await confirmed(question, submitter?.textContent.trim()))) return;
  if (submitter) submitter.disabled = true;
  await uploads.get(form); // nothing that was attached is left behind
  const body = new URLSearchParams(new FormData(form));
  if (submitter?.name) body.append(submitter.name, submitter.value);
  sending += 1;
  try {
    const answer = await fetch(submitter?.getAttribute("formaction") ?? form.getAttribute("action"), {
      method: "POST",
      headers: { "X-CSRF-Token": csrf, Accept: "application/json" },
      body,
    });
    if (answer.redirected) return location.assign(answer.url);
    const told = await answer.json();
    if (!answer.ok || told.error) return notify(told.error ?? "That did not work.", true);
    if (form.dataset.reset !== undefined) form.reset(), $(".chips", form)?.replaceChildren();
    if (told.secret) return showSecret(told);
    if (told.to) return leave(told.to);
    if (told.said) notify(told.said);
    if (submitter?.dataset.stay === undefined) form.closest("dialog")?.close();
    stale = true;
  } catch {
    notify("Postroom does not answer. Nothing was changed; try again in a moment.", true);
  } finally {
    if (submitter) submitter.disabled = false;
    sending -= 1;
    if (stale) refresh();
  }
}

// What is left behind asks for nothing any more: it may be gone.
function leave(to) {
  root.dataset.paused = "leaving";
  location.assign(to);
}

document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  event.preventDefault();
  send(event.target, event.submitter);
});

// files: taken up at once, and sent along with the words by their paths

const uploads = new WeakMap();

async function upload(input) {
  const form = input.form;
  const chips = $(".chips", form);
  for (const file of [...input.files]) {
    const chip = document.createElement("span");
    chip.className = "tag";
    chip.textContent = `${file.name} …`;
    chips.append(chip);
    try {
      const answer = await fetch(`/portal/files?name=${encodeURIComponent(file.name)}`, {
        method: "PUT",
        headers: { "X-CSRF-Token": csrf, Accept: "application/json" },
        body: file,
      });
      const told = await answer.json();
      if (!answer.ok) throw new Error(told.error);
      const field = Object.assign(document.createElement("input"), { type: "hidden", name: "files", value: told.path });
      const off = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: "×" });
      off.setAttribute("aria-label", `Leave out ${file.name}`);
      off.addEventListener("click", () => chip.remove());
      chip.replaceChildren(`${file.name} `, field, off);
    } catch (problem) {
      chip.remove();
      notify(`${file.name} was not taken: ${problem.message || "Postroom does not answer."}`, true);
    }
  }
  input.value = "";
}

document.addEventListener("change", (event) => {
  const input = event.target;
  if (input.dataset.upload !== undefined) uploads.set(input.form, Promise.all([uploads.get(input.form), upload(input)]));
});

function confirmed(question, word) {
  const box = $("#confirm");
  $("p", box).textContent = question;
  $("button.accent", box).textContent = word || "Yes";
  box.returnValue = "";
  box.showModal();
  return new Promise((resolve) => {
    box.addEventListener("close", () => resolve(box.returnValue === "yes"), { once: true });
  });
}

function showSecret(told) {
  const box = $("#secret");
  $("p", box).textContent = told.said;
  $("pre", box).textContent = told.secret;
  const drawn = told.picture && new DOMParser().parseFromString(told.picture, "text/html").body.firstChild;
  $(".picture", box).replaceChildren(...(drawn ? [document.adoptNode(drawn)] : []));
  box.showModal();
  box.addEventListener("close", () => (told.to ? leave(told.to) : refresh()), { once: true });
}

// palette

const pages = $$(".rail a.page").map((link) => ({ text: $(".text", link).textContent, hint: "page", to: link.href }));
let found = [];
let chosen = 0;
let places = null;

function rank(text, words) {
  const low = text.toLowerCase();
  return words.every((word) => low.includes(word)) ? (low.startsWith(words[0]) ? 0 : 1) : -1;
}

function showFound() {
  const box = $("#palette");
  const words = $("input", box).value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...pages, ...(places ?? []), ...commands];
  found = all
    .map((each) => [words.length ? rank(each.text, words) : 0, each])
    .filter(([order]) => order >= 0)
    .sort(([a], [b]) => a - b)
    .slice(0, 40)
    .map(([, each]) => each);
  chosen = Math.min(chosen, Math.max(0, found.length - 1));
  const list = $("ul", box);
  list.replaceChildren(
    ...found.map((each, at) => {
      const line = document.createElement("li");
      line.id = `found-${at}`;
      line.setAttribute("role", "option");
      line.setAttribute("aria-selected", at === chosen);
      const hint = document.createElement("span");
      hint.textContent = each.hint;
      line.append(each.text, hint);
      line.addEventListener("click", () => choose(each));
      return line;
    }),
  );
  $("input", box).setAttribute("aria-activedescendant", found.length ? `found-${chosen}` : "");
  $(`#found-${chosen}`)?.scrollIntoView({ block: "nearest" });
}

function choose(each) {
  $("#palette").close();
  each.run ? each.run() : location.assign(each.to);
}

async function openPalette() {
  const box = $("#palette");
  if (box.open) return;
  $("input", box).value = "";
  chosen = 0;
  box.showModal();
  showFound();
  if (places === null) {
    places = [];
    const answer = await fetch("/portal/places", { headers: { Accept: "application/json" } }).catch(() => null);
    if (answer?.ok) places = await answer.json();
    if (box.open) showFound();
  }
}

$("#palette input")?.addEventListener("input", () => ((chosen = 0), showFound()));
$("#palette")?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    chosen = (chosen + step + found.length) % Math.max(1, found.length);
    showFound();
  } else if (event.key === "Enter" && found[chosen]) {
    event.preventDefault();
    choose(found[chosen]);
  }
});

// theme, rail, pausing

function setTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("postroom.theme", root.dataset.theme);
}

function foldRail() {
  root.dataset.rail = root.dataset.rail === "folded" ? "open" : "folded";
  localStorage.setItem("postroom.rail", root.dataset.rail);
}

function pause() {
  if (root.dataset.paused) delete root.dataset.paused;
  else root.dataset.paused = "yes";
  setPulse(root.dataset.paused ? "paused" : "live", root.dataset.paused ? "Paused" : "Live");
  for (const button of $$("[data-do=pause]")) button.setAttribute("aria-pressed", Boolean(root.dataset.paused));
  if (!root.dataset.paused) refresh();
}

const doings = {
  theme: setTheme,
  fold: foldRail,
  palette: openPalette,
  keys: () => $("#keys").showModal(),
  pause,
  menu: () => (root.dataset.menu = root.dataset.menu === "open" ? "" : "open"),
  close: (from) => from.closest("dialog").close(),
  dialog: (from) => $(`#${from.dataset.opens}`).showModal(),
  all: (from) => $$(`input[name="${from.dataset.names}"]`).forEach((box) => (box.checked = from.checked)),
  copy: (from) => navigator.clipboard?.writeText(from.dataset.text).then(() => notify("Copied.")),
};

const commands = [
  { text: "Switch between light and dark", hint: "command", run: setTheme },
  { text: "Fold or unfold the menu", hint: "command", run: foldRail },
  { text: "Pause or resume live updates", hint: "command", run: pause },
  { text: "Keyboard shortcuts", hint: "command", run: doings.keys },
];

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) doings[button.dataset.do]?.(button);
});
document.addEventListener("change", (event) => {
  if (event.target.dataset?.submit !== undefined) event.target.form.requestSubmit();
});

// keyboard

const ways = { n: "/", f: "/floor", c: "/chat", o: "/conversations", q: "/queues", d: "/queues/dead", i: "/insights", t: "/tasks", a: "/agents", s: "/settings", e: "/events", y: "/system" };
let leading = 0;

function moveRow(step) {
  const rows = $$("[data-row]").filter((row) => row.offsetParent);
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement.closest("[data-row]"));
  rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step))].focus();
}

document.addEventListener("keydown", (event) => {
  if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return openPalette();
  }
  const field = document.activeElement;
  if (event.key === "Enter" && (event.metaKey || event.ctrlKey || field?.dataset?.enter !== undefined) && field?.form && !event.shiftKey && field.tagName === "TEXTAREA") {
    event.preventDefault();
    return field.form.requestSubmit();
  }
  if (event.key === "Escape" && root.dataset.menu === "open") return doings.menu();
  if (event.key === "Escape" && typing() && !$("dialog[open]")) return field.blur();
  if (typing() || event.metaKey || event.ctrlKey || event.altKey || $("dialog[open]")) return;
  if (leading && Date.now() - leading < 1500 && ways[event.key]) {
    leading = 0;
    return location.assign(ways[event.key]);
  }
  leading = 0;
  const row = field?.closest?.("[data-row]");
  const act = row && $$("[data-key]", row).find((each) => each.dataset.key === event.key);
  if (act) {
    event.preventDefault();
    return act.click();
  }
  if (event.key === "g") leading = Date.now();
  else if (event.key === "j" || (event.key === "ArrowDown" && row)) event.preventDefault(), moveRow(1);
  else if (event.key === "k" || (event.key === "ArrowUp" && row)) event.preventDefault(), moveRow(-1);
  else if (event.key === "Enter" && row === field && row) $("a[href]", row)?.click();
  else if (event.key === "x" && row) $("input[type=checkbox]", row)?.click();
  else if (event.key === "/") {
    const search = $("[data-search]");
    if (search) event.preventDefault(), search.focus();
  } else if (event.key === "?") doings.keys();
  else if (event.key === "[") foldRail();
  else if (event.key === "p") pause();
  else return;
});

// the board: by mouse here, by keys through the buttons of each card

let dragged = null;
document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.(".card");
  dragged?.classList.add("dragged");
});
document.addEventListener("dragend", () => {
  dragged?.classList.remove("dragged");
  $$(".column.over").forEach((each) => each.classList.remove("over"));
  dragged = null;
});
document.addEventListener("dragover", (event) => {
  const column = dragged && event.target.closest(".column");
  if (!column) return;
  event.preventDefault();
  $$(".column.over").forEach((each) => each !== column && each.classList.remove("over"));
  column.classList.add("over");
});
document.addEventListener("drop", (event) => {
  const column = dragged && event.target.closest(".column");
  if (!column) return;
  event.preventDefault();
  const form = $("form.move", dragged);
  $("[name=status]", form).value = column.dataset.status;
  form.requestSubmit();
});

// chat begins at its end
const lines = $(".lines");
if (lines) lines.scrollTop = lines.scrollHeight;
root.dataset.ready = "yes";
