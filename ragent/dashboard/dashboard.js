"use strict";
// Asks the control API once a second and draws what changed. Rates are differences of counters.

const PERIOD_MS = 1000;
const HISTORY = 120;
const EVENTS_MAX = 200;
const TOKEN_KEY = "cssl-token";

const at = (id) => document.getElementById(id);
const state = { token: sessionStorage.getItem(TOKEN_KEY), before: null, agents: new Map(), listeners: new Map(), tiles: new Map(),
  busy: false };

// --- the API ---

class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

async function api(method, path, body) {
  const headers = { "Content-Type": "application/json", ...(state.token ? { Authorization: `Bearer ${state.token}` } : {}) };
  const options = { method, headers, cache: "no-store" };
  if (body) options.body = JSON.stringify(body);
  const response = await fetch(path, options);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer.error || response.statusText);
  return answer;
}

// --- small pieces ---

function make(name, attributes = {}, ...children) {
  const svg = ["svg", "rect", "path", "text", "polyline", "title"].includes(name);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const small = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const number = (n) => (n >= 100 || Number.isInteger(n) ? whole : small).format(n);
const counted = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;

function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; n >= 1000 && unit < units.length - 1; unit++) n /= 1000;
  return `${number(n)} ${units[unit]}`;
}

function duration(seconds) {
  const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24, minutes = Math.floor(seconds / 60) % 60;
  return days ? `${days} d ${hours} h` : hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min` : `${seconds} s`;
}

const mood = (s) => (s === "ready" ? "good" : s === "lost" || s === "no backend" ? "bad" : "warn");

function tell(text, kind = "") {
  const now = new Date();
  const line = make("li", {}, make("time", { datetime: now.toISOString() }, now.toISOString().slice(11, 19) + "Z"),
    make("span", { class: kind }, text));
  at("events").prepend(line);
  while (at("events").children.length > EVENTS_MAX) at("events").lastChild.remove();
}

// A row of that table. On a phone, where a row is a card, each cell shows the title of its column.
function tableRow(id, ...cells) {
  const titles = at(id).tHead.rows[0].cells;
  cells.forEach((cell, i) => { if (i) cell.dataset.title = titles[i].textContent; });
  return make("tr", {}, ...cells);
}

// --- tiles with their last two minutes ---

function sparkline(history) {
  const top = Math.max(...history, 1e-9);
  return history.map((v, i) => `${(i * 100) / (HISTORY - 1)},${28 - (26 * v) / top}`).join(" ");
}

function tile(name, value, text, unit = "", { place = "tiles", kind = "" } = {}) {
  let t = state.tiles.get(name);
  if (!t) {
    t = { value: make("span"), unit: make("small"), line: make("polyline"), history: [] };
    const drawing = make("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" }, t.line);
    at(place).append(make("div", {}, make("dt", {}, name), make("dd", {}, t.value, t.unit), drawing));
    state.tiles.set(name, t);
  }
  t.history.push(value);
  if (t.history.length > HISTORY) t.history.shift();
  setText(t.value, text);
  t.value.className = kind;
  setText(t.unit, unit);
  t.line.setAttribute("points", sparkline(t.history));
}

// --- what the numbers say ---

const BAD_ENDS = ["agent_lost", "move_failed", "move_unsafe", "no_agent", "overloaded", "internal", "link_violation", "poison",
  "drain_timeout", "handshake_failed", "record_violation", "backend_unreachable", "backend_reset"];
const sum = (object, names) => names.reduce((total, name) => total + (object[name] || 0), 0);

function rates(now, before, seconds) {
  const out = {};
  for (const [name, value] of Object.entries(now || {}))
    out[name] = before && name in before ? Math.max(0, (value - before[name]) / seconds) : 0;
  return out;
}

function compare(now) {
  const before = state.before, seconds = before ? (now.time - before.time) / 1000 : 1;
  const own = rates(now.counters.ragent, before?.counters.ragent, seconds), agents = {};
  for (const [name, counters] of Object.entries(now.counters.agents))
    agents[name] = counters.error ? {} : rates(counters, before?.counters.agents[name], seconds);
  return { own, agents, seconds };
}

function total(agents, name) {
  return Object.values(agents).reduce((n, a) => n + (a[name] || 0), 0);
}

function drawTiles(now, r) {
  const own = now.counters.ragent, full = total(r.agents, "handshakes_full"), resumed = total(r.agents, "handshakes_resumed");
  const share = full + resumed ? (100 * resumed) / (full + resumed) : 0;
  tile("Connections", own.connections_open, number(own.connections_open));
  tile("Resting", own.connections_resting, number(own.connections_resting));
  tile("Full handshakes", full, number(full), " /s");
  tile("Resumed", resumed, number(resumed), ` /s, ${number(share)} %`);
  tile("To clients", r.own.server_bytes, bytes(r.own.server_bytes), "/s");
  tile("Moves", r.own.adopted, number(r.own.adopted), " /s");
  tile("Errors", sum(r.own, BAD_ENDS.map((e) => `ended_${e}`)), number(sum(own, BAD_ENDS.map((e) => `ended_${e}`))), " in all");
}

// --- mail: shown only if a listener has a service whose clients may begin in clear (STARTTLS) ---

// The sum over all agents, since their starts.
const ofAgents = (now, names) => Object.values(now.counters.agents).reduce((n, a) => n + sum(a, names), 0);

function drawMail(now, r) {
  at("mail").hidden = !now.listeners.some((l) => l.may_start_in_clear);
  if (at("mail").hidden) return;
  const own = now.counters.ragent;
  const mailTile = (name, value, total, unit, kind = "") => tile(name, value, number(total), unit, { place: "mail-tiles", kind });
  const since = (name, rows, unit) => mailTile(name, sum(r.own, rows), sum(own, rows), unit, sum(own, rows) ? "bad" : "");
  mailTile("Before STARTTLS", own.preambles_under_way, own.preambles_under_way, " now");
  mailTile("STARTTLS done", r.own.starttls_done, own.starttls_done, " in all");
  mailTile("Mail in clear", own.connections_relayed, own.connections_relayed, " now");
  since("Refused before TLS", ["preambles_refused", "preambles_displaced"], " in all");
  since("Injections", ["starttls_injections"], " in all");
  mailTile("Mails repeated", total(r.agents, "mail_repeated"), ofAgents(now, ["mail_repeated"]), " in all");
}

// --- smtpproxy: shown only if the cluster file names one ---

// The rows of a table as texts: the first is the name, the others are numbers unless `words` has their place.
function drawTable(id, rows, words = []) {
  at(`${id}-part`).hidden = !rows.length;
  at(id).tBodies[0].replaceChildren(...rows.map(([name, ...values]) => tableRow(id, make("th", { scope: "row" }, name),
    ...values.map((value, i) => make("td", words.includes(i) ? {} : { class: "number" }, value)))));
}

// A limit below what is configured was learned from the receiver's refusals.
const limitText = (d) => (d.limit < d.ceiling ? `${number(d.limit)}, learned` : number(d.limit));

function drawReceivers(receivers) {
  drawTable("receivers", receivers.map((d) => [d.address, limitText(d), number(d.sending), number(d.waiting),
    `${number(d.mean_wait_ms)} ms`, number(d.accepted), number(d.transactions)]));
}

function drawLines(lines) {
  drawTable("lines", lines.map((d) => [d.destination, d.flow, number(d.messages), number(d.deferred), number(d.held)]), [0]);
}

function drawProxyTiles(p, r) {
  const t = (name, value, text, unit, kind = "") => tile(name, value, text, unit, { place: "smtpproxy-tiles", kind });
  t("Senders", p.sessions.now, number(p.sessions.now), " connections");
  t("Wait for a receiver", p.sessions.waiting, number(p.sessions.waiting), " now", p.sessions.waiting ? "warn" : "");
  t("Accepted", r.accepted || 0, number(r.accepted || 0), ` /s, ${number(p.counters.accepted)} in all`);
  t("Refused by receivers", r.refused || 0, number(p.counters.refused), " in all");
  t("In doubt", r.in_doubt || 0, number(p.counters.in_doubt), " in all", p.counters.in_doubt ? "bad" : "");
  if (!p.queue) return;
  t("In the queue", p.queue.messages, number(p.queue.messages), `, ${bytes(p.queue.bytes)}`);
  t("Deferred", p.queue.deferred, number(p.queue.deferred), " now", p.queue.deferred ? "warn" : "");
  t("Delivered", r.delivered || 0, number(r.delivered || 0), ` /s, ${number(p.counters.delivered)} in all`);
  t("Redis in sync", p.queue.in_sync, number(p.queue.in_sync), " of 2", p.queue.in_sync < 2 ? "bad" : "");
}

// Another program wrote the object, perhaps of another release.
const proxyTells = (p) => p && p.sessions && p.counters && p.destinations?.rows && (!p.queue || p.queue.destinations?.rows);

function proxyState(p) {
  if (!proxyTells(p)) return [p.error || "tells nothing", "bad"];
  return p.queue ? [p.queue.state, p.queue.state === "active" ? "good" : "warn"] : ["relays", "good"];
}

function drawProxy(now, seconds) {
  const p = now.smtpproxy, before = state.before?.smtpproxy;
  at("smtpproxy").hidden = !p;
  at("smtpproxy-tiles").hidden = !proxyTells(p);
  drawReceivers(proxyTells(p) ? p.destinations.rows : []);
  drawLines(proxyTells(p) && p.queue ? p.queue.destinations.rows : []);
  if (!p) return;
  const [text, kind] = proxyState(p);
  setText(at("smtpproxy-state"), text);
  at("smtpproxy-state").className = `pill ${kind}`;
  if (proxyTells(p)) drawProxyTiles(p, rates(p.counters, before?.counters, seconds));
}

// --- listeners ---

function listenerRow(name) {
  const row = { service: make("td"), numbers: Array.from({ length: 7 }, () => make("td", { class: "number" })) };
  at("listeners").tBodies[0].append(tableRow("listeners", make("th", { scope: "row" }, name), row.service, ...row.numbers));
  return row;
}

function drawListener(l, rate) {
  let row = state.listeners.get(l.name);
  if (!row) state.listeners.set(l.name, (row = listenerRow(l.name)));
  setText(row.service, l.service);
  const values = [number(l.connections), number(rate.handshakes_full), number(rate.handshakes_resumed), `${bytes(rate.client_bytes)}/s`,
    `${bytes(rate.server_bytes)}/s`, number(l.handshakes_failed), number(l.refused)];
  values.forEach((value, i) => setText(row.numbers[i], value));
}

function drawListeners(now, seconds) {
  const before = new Map((state.before?.listeners || []).map((l) => [l.name, l]));
  for (const l of now.listeners) drawListener(l, rates(l, before.get(l.name), seconds));
}

// --- the picture ---

function box(x, y, width, title, lines, kind) {
  const parts = [make("rect", { x: x - width / 2, y: y - 24, width, height: 48, rx: 8, class: kind })];
  parts.push(make("text", { x, y: lines ? y - 8 : y }, title));
  if (lines) parts.push(make("text", { x, y: y + 10, class: "soft" }, lines));
  return parts;
}

function flow(x1, y1, x2, y2, weight) {
  const middle = (x1 + x2) / 2, width = 1.5 + Math.min(5, 0.6 * Math.log10(1 + weight));
  return make("path", { d: `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, "stroke-width": width,
    class: weight >= 1 ? "busy" : "" });
}

// The middle of each box; down: distance from the middle of the picture. On a phone the clients stand above RAgent.
const WIDE = { width: 740, height: 120, clients: { x: 70, down: 0 }, ragent: { x: 350, down: 0 }, agents: 650 };
const NARROW = { width: 340, height: 170, clients: { x: 78, down: -50 }, ragent: { x: 78, down: 50 }, agents: 258 };

function drawTiers(now, r) {
  const l = at("tiers").clientWidth < 480 ? NARROW : WIDE, agents = now.agents, parts = [];
  const height = Math.max(l.height, agents.length * 62), center = height / 2;
  const clients = center + l.clients.down, ragent = center + l.ragent.down, busy = r.own.server_bytes + r.own.client_bytes;
  parts.push(l === WIDE ? flow(l.clients.x + 60, clients, l.ragent.x - 70, ragent, busy)
    : flow(l.clients.x, clients + 24, l.ragent.x, ragent - 24, busy));
  agents.forEach((a, i) => {
    const y = (height * (i + 0.5)) / agents.length, rate = r.agents[a.name] || {};
    parts.push(flow(l.ragent.x + 70, ragent, l.agents - 80, y, (rate.bytes_to_client || 0) + (rate.bytes_to_backend || 0)));
    parts.push(...box(l.agents, y, 160, `${a.name} · ${a.state}`, counted(a.connections, "connection"), mood(a.state)));
  });
  parts.push(...box(l.clients.x, clients, 120, "clients", counted(now.counters.ragent.connections_open, "connection"), ""));
  parts.push(...box(l.ragent.x, ragent, 140, `RAgent ${now.status.name}`, `${number(now.counters.ragent.connections_resting)} resting`,
    now.status.state === "running" ? "good" : "warn"));
  at("tiers").setAttribute("viewBox", `0 0 ${l.width} ${height}`);
  at("tiers").replaceChildren(...parts);
  setText(at("tiers-text"), `RAgent ${now.status.name} holds ${counted(now.counters.ragent.connections_open, "connection")}; ` +
    agents.map((a) => `${a.name} is ${a.state} with ${a.connections}`).join(", "));
}

// --- the table ---

function drainText(a) {
  const d = a.drain;
  if (!d || d.state === "none") return a.state;
  return d.state === "draining" ? `draining: ${number(d.left)} left` : d.state;
}

function agentRow(name) {
  const cell = (kind) => make("td", kind ? { class: kind } : {});
  const row = { pill: make("span", { class: "pill" }), meter: make("meter", { min: 0, max: 1000, high: 850 }),
    button: make("button", { type: "button" }), numbers: Array.from({ length: 6 }, () => cell("number")) };
  row.meter.setAttribute("aria-label", `${name}: share of a processor in use`);
  row.button.addEventListener("click", () => (row.drained ? undrain(name) : askDrain(name)));
  row.element = tableRow("agents", make("th", { scope: "row" }, name), make("td", {}, row.pill), ...row.numbers,
    make("td", {}, row.meter), make("td", {}, row.button));
  at("agents").tBodies[0].append(row.element);
  return row;
}

function drawAgent(a, rate) {
  let row = state.agents.get(a.name);
  if (!row) state.agents.set(a.name, (row = agentRow(a.name)));
  setText(row.pill, drainText(a));
  row.pill.className = `pill ${mood(a.state)}`;
  const values = [number(a.connections), number(rate.handshakes_full || 0), number(rate.handshakes_resumed || 0),
    `${bytes((rate.bytes_to_client || 0) + (rate.bytes_to_backend || 0))}/s`, number(rate.adopted || 0), number(a.sessions)];
  values.forEach((value, i) => setText(row.numbers[i], value));
  row.meter.value = a.busy_permille;
  row.drained = Boolean(a.drain && a.drain.state !== "none");
  row.button.hidden = !row.drained && a.state === "lost";
  setText(row.button, row.drained ? "Undrain" : "Drain");
  row.button.setAttribute("aria-label", `${row.drained ? "Undrain" : "Drain"} ${a.name}`);
}

function askDrain(name) {
  const dialog = at("drain-dialog");
  setText(at("drain-title"), `Drain ${name}?`);
  dialog.returnValue = "";
  dialog.onclose = () => {
    if (dialog.returnValue === "drain") operate(`drain of ${name}`, `/v1/agents/${encodeURIComponent(name)}/drain`,
      { timeout_ms: 1000 * Number(at("drain-seconds").value) });
  };
  dialog.showModal();
}

const undrain = (name) => operate(`undrain of ${name}`, `/v1/agents/${encodeURIComponent(name)}/undrain`, {});

async function operate(what, path, body) {
  try {
    await api("POST", path, body);
    tell(`${what}: begun`);
  } catch (e) {
    tell(`${what}: ${e.message}`, "bad");
    if (e.status === 401 || e.status === 403) askToken(e.message);
  }
  refresh();
}

// --- events: what changed since the last look ---

function watchAgents(now) {
  const before = new Map((state.before?.agents || []).map((a) => [a.name, a]));
  for (const a of now.agents) {
    const old = before.get(a.name);
    if (!old) continue;
    if (old.state !== a.state) tell(`${a.name}: ${old.state} → ${a.state}`, mood(a.state));
    if (old.drain.state !== a.drain.state && ["drained", "timed out"].includes(a.drain.state))
      tell(`${a.name} is ${a.drain.state}: ${a.drain.moved} moved, ${a.drain.rested} put to rest, ${a.drain.ended} ended`,
        a.drain.ended ? "warn" : "good");
  }
}

// The fates of a lost agent's connections.
const TAKEOVERS = [["takeovers_rested", "rests until its next record", "rest until their next record", "warn"],
  ["takeovers_adopted", "needs another agent at once", "need another agent at once", "warn"],
  ["takeovers_restarted", "begins its handshake again", "begin their handshakes again", "warn"],
  ["takeovers_poisoned", "met two losses without an answer", "met two losses without an answer", "bad"],
  ["takeovers_ended", "was reset", "were reset", "bad"]];

// Events of mail clients before TLS.
const MAIL_EVENTS = [["starttls_injections", "reset, as bytes in clear came where TLS had to begin", "bad"],
  ["preambles_refused", "refused, as too many had not said STARTTLS", "warn"],
  ["preambles_displaced", "ended before STARTTLS to make room for others", "warn"],
  ["preambles_lost", "ended before STARTTLS, as their agent was lost", "warn"]];

// How many connections an agent took over from lost agents. Each counts in one bucket.
const takenOver = (counters, name) => Object.entries(counters.of_agents[name] || {})
  .filter(([row]) => row.startsWith("latency_takeover_") && !row.endsWith("_sum_us")).reduce((n, [, value]) => n + value, 0);

function watchCounters(now) {
  const own = now.counters.ragent, old = state.before?.counters.ragent;
  if (!old) return;
  for (const [name, one, many, kind] of TAKEOVERS) {
    const more = own[name] - old[name];
    if (more > 0) tell(`of a lost agent: ${counted(more, "connection")} ${more === 1 ? one : many}`, kind);
  }
  for (const name of Object.keys(now.counters.of_agents)) {
    const more = takenOver(now.counters, name) - takenOver(state.before.counters, name);
    if (more > 0) tell(`${name} took over ${counted(more, "connection")}`, "good");
  }
  for (const [name, text, kind] of MAIL_EVENTS) {
    const more = (own[name] || 0) - (old[name] || 0);
    if (more > 0) tell(`${counted(more, "client")} of mail: ${text}`, kind);
  }
  for (const e of BAD_ENDS) {
    const more = (own[`ended_${e}`] || 0) - (old[`ended_${e}`] || 0);
    if (more > 0) tell(`${number(more)} ended: ${e.replaceAll("_", " ")}`, "bad");
  }
}

// The keeper has started it again: how often, and what that meant for connections.
function died({ deaths, at_deaths: at }) {
  const count = deaths.killed + deaths.crashed + deaths.hung;
  if (!count) return "";
  return `, died ${counted(count, "time")} (${counted(at.went_on, "connection")} went on, ${at.reset} reset, last pause ${(at.last_pause_us / 1000).toFixed(1)} ms)`;
}

// --- once a second ---

function draw(now) {
  const r = compare(now);
  setText(at("name"), now.status.name);
  setText(at("facts"), `version ${now.status.version}, up ${duration(now.status.uptime_s)}, ${now.status.workers} worker${now.status.workers === 1 ? "" : "s"}${died(now.status)}`);
  document.title = `CSSL ${now.status.name}: ${counted(now.counters.ragent.connections_open, "connection")}`;
  drawTiles(now, r);
  drawTiers(now, r);
  now.agents.forEach((a) => drawAgent(a, r.agents[a.name] || {}));
  drawListeners(now, r.seconds);
  drawMail(now, r);
  drawProxy(now, r.seconds);
  watchAgents(now);
  watchCounters(now);
  state.before = now;
}

function link(text, kind) {
  setText(at("link"), text);
  at("link").className = `pill ${kind}`;
}

async function askAll(names) {
  const answers = {};
  for (const name of names) answers[name] = await api("GET", `/v1/${name}`);
  return answers;
}

async function refresh() {
  if (!state.token) {
    link("token needed", "warn");
    askToken("");
    return;
  }
  if (state.busy) return;
  state.busy = true;
  try {
    // One after the other, on one connection: RAgent keeps a bounded number for all its operators.
    const { status, agents, counters, listeners, mail } = await askAll(["status", "agents", "counters", "listeners", "mail"]);
    draw({ time: performance.now(), status, agents: agents.agents || agents, counters, listeners: listeners.listeners,
      smtpproxy: mail.smtpproxy });
    link("live", "good");
  } catch (e) {
    if (e.status === 401) askToken(e.message);
    link(e.status === 401 ? "token needed" : e.status ? e.message : "not reachable", "bad");
  }
  state.busy = false;
}

function askToken(error) {
  const dialog = at("token-dialog");
  setText(at("token-error"), error);
  if (dialog.open) return;
  at("token").value = "";
  dialog.returnValue = "";
  dialog.onclose = () => {
    if (dialog.returnValue !== "use" || !at("token").value) return;
    state.token = at("token").value.trim();
    sessionStorage.setItem(TOKEN_KEY, state.token);
    refresh();
  };
  dialog.showModal();
}

// Cancel is no submit button: it stands first, so Enter would choose it.
for (const cancel of document.querySelectorAll("dialog .cancel"))
  cancel.addEventListener("click", () => cancel.closest("dialog").close());
at("token-button").addEventListener("click", () => askToken(""));
refresh();
setInterval(() => { if (!document.hidden && !at("token-dialog").open) refresh(); }, PERIOD_MS);
