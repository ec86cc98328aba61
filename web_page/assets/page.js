// Shows a node: what `/events` says of it, or a recording. The first half knows no document, so
// that tests can run it anywhere; the second half draws.
"use strict";

// ---- what things mean ---------------------------------------------------------------------

// Why a neighbour is not upstream, for whoever does not know the protocol.
const OBSTACLES = {
  "late": "its next heartbeat is overdue; used only after all others",
  "unanswered": "what we said to the RSU through it was not answered",
  "leaving": "it, or the RSU, said goodbye",
  "one-way": "it has not shown lately that it hears us",
  "through-us": "it sends through us: frames would come back",
  "quiet": "we have just started, and still listen",
  "stale": "what it said of its way is too old",
  "infeasible": "it may lead back to us: not better than what we said ourselves",
  "no-way": "it advertises no way to an RSU",
};

const STANDINGS = {
  "in-use": "in use",
  "standby": "next, and knows of us",
  "not-better": "could be used, and is not better by enough for long enough",
  "shunned": "did not answer us: others first for a while",
  "leaving": "said goodbye",
  "quiet": "we have just started, and still listen",
  "no-upstream": "heard of, and no neighbour leads there",
};

const CAUSES = {
  "first": "there was no way before",
  "dead": "the upstream fell silent",
  "goodbye": "the upstream, or the RSU, said goodbye",
  "withdrawn": "the upstream lost its own way, and said so",
  "restarted": "the upstream started again",
  "fading": "the link got worse fast",
  "predicted": "by its trend the other was about to be stronger",
  "better": "the other had been cheaper for long enough",
  "link-down": "our own radio went down",
};

// The promises: a planned change, a silent death.
const PLANNED_MS = 50;
const SILENT_MS = 300;

const KEPT_S = 60;
const CHANGES_KEPT = 256;
const EVENTS_KEPT = 512;
const TRAIL_MAX = 2000;

// Names that are better than the end of an id: those of a simulation.
const names = new Map();

const short = (id) => (id ? names.get(id) ?? id.split(":").slice(-2).join(":") : "–");
const fixed = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const percent = (ratio) => (ratio === null || ratio === undefined ? "–" : `${Math.round(ratio * 100)} %`);

function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = Math.floor(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} days`;
}

// A simulation counts from its start, everybody else from 1970.
const clock = (ms) => (ms < 1e11 ? `${(ms / 1000).toFixed(1)} s` : new Date(ms).toLocaleTimeString([], { hour12: false }));

// In a few words how a candidate stands: the word comes first, then its class of colour.
function standing(route, candidate) {
  if (candidate.is_used && route.standing === "in-use") return ["in use", "good"];
  if (candidate.is_used && route.standing === "standby") return ["standby", "warn"];
  if (candidate.obstacles.length) return [candidate.obstacles.map((o) => o.replaceAll("-", " ")).join(", "), "bad"];
  return ["usable", ""];
}

// Whole sentences: why this candidate is, or is not, the one.
function reasons(route, candidate) {
  const said = candidate.obstacles.length ? [`Not used: ${candidate.obstacles.map((o) => OBSTACLES[o] ?? o).join("; ")}.`] : [];
  if (candidate.is_used && route.standing === "in-use") {
    said.unshift(`In use: frames to RSU ${short(route.rsu)} go through it.`);
  } else if (candidate.is_used) {
    said.unshift(`It would be upstream to RSU ${short(route.rsu)}: ${STANDINGS[route.standing] ?? route.standing}.`);
  }
  const { margin, margin_needed: needed, better_for_ms: since } = candidate;
  if (!candidate.is_used && !candidate.obstacles.length && margin !== null) {
    if (margin <= 0) {
      said.push(`Not better: it costs ${fixed(-margin, 2)} more than the one in use.`);
    } else if (needed !== null && margin < needed) {
      said.push(`Cheaper by ${fixed(margin, 2)}, and ${fixed(needed, 2)} are needed to change.`);
    } else {
      said.push(`Cheaper by ${fixed(margin, 2)} for ${span(since ?? 0)}; it has to stay so for long enough.`);
    }
  }
  if (!said.length) said.push("Usable: kept ready to take over.");
  return said;
}

// What decided a change, with its figures.
function changeSaid(change) {
  const cause = change.cost ? change.cost.cause : change.cause;
  const silence = cause === "dead" ? ` for ${change.silence_ms} ms` : "";
  return `${cause}: ${CAUSES[cause] ?? cause}${silence}`;
}

function place(at) {
  if (!at) return "nowhere";
  if (at.rsu === at.upstream) return `RSU ${short(at.rsu)}`;
  return `RSU ${short(at.rsu)} via ${short(at.upstream)} (${at.hops} hops)`;
}

// What happened, and its figures. Events this page does not know are shown as they come.
function eventSaid(event) {
  const { number, at_unix_ms: at, event: kind, ...fields } = event;
  const what = kind.replaceAll("-", " ");
  if (kind === "upstream-changed") return [what, `from ${place(event.from)} to ${place(event.to)}: ${changeSaid(event)}`];
  if (kind === "hand-over") return [what, `to ${place(event.to)}, gap ${event.gap_ms} ms, ${event.lost} frames lost`];
  const shown = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value).replaceAll(/[{}"]/g, " ") : value);
  return [what, Object.entries(fields).map(([name, value]) => `${name.replaceAll("_", " ")} ${shown(value)}`).join(", ")];
}

// ---- what is known ------------------------------------------------------------------------

function blank() {
  return { node: null, role: null, at: 0, view: null, fix: null, trail: [], problems: [], changes: [], events: [], rates: new Map(), missed: 0 };
}

// Takes in topics of the control socket, whole or as an update.
function take(state, topics, isWhole) {
  state.node = topics.node ?? state.node;
  state.role = topics.role ?? state.role;
  if (topics.view) {
    count(state, topics.view, topics.at_unix_ms);
    state.view = topics.view;
    state.fix = fixOf(topics);
    if (state.fix) state.trail = grown(state.trail, state.fix);
  }
  state.at = topics.at_unix_ms ?? state.at;
  if (topics.problems) state.problems = topics.problems;
  if (isWhole) {
    state.changes = [];
    state.events = [];
  }
  state.changes = merged(state.changes, topics.changes ?? [], CHANGES_KEPT);
  state.events = merged(state.events, topics.events ?? [], EVENTS_KEPT);
}

// Where the node itself is: what its receiver says, or what the node was told of it.
function fixOf(topics) {
  const fix = topics.position?.fix ?? topics.view.node.position;
  return fix ? { lat: fix.latitude_deg, lon: fix.longitude_deg, accuracy: fix.accuracy_m, age: topics.position?.age_ms ?? fix.age_ms ?? null } : null;
}

// The way it took. Where it grows too long every second place of it goes.
function grown(trail, { lat, lon }) {
  const last = trail.at(-1);
  if (last && last.lat === lat && last.lon === lon) return trail;
  const all = [...trail, { lat, lon }];
  return all.length > TRAIL_MAX ? all.filter((_, at) => at % 2 === 0 || at === all.length - 1) : all;
}

// By number: one that comes again, a change whose cost is known now, replaces what was there.
function merged(known, news, most) {
  if (!news.length) return known;
  const byNumber = new Map(known.map((one) => [one.number, one]));
  for (const one of news) byNumber.set(one.number, one);
  return [...byNumber.values()].sort((a, b) => a.number - b.number).slice(-most);
}

// How fast each counter moves, for the last minute.
function count(state, view, at) {
  const before = state.view;
  const seconds = (at - state.at) / 1000;
  const isSame = before && seconds > 0 && view.uptime_ms >= before.uptime_ms;
  if (before && !isSame) state.rates.clear();
  for (const [group, counts] of Object.entries(view.counters)) {
    for (const [name, total] of Object.entries(counts)) {
      // The greatest of something is not how often it happened.
      if (name.endsWith("_max_us")) continue;
      const key = `${group} ${name}`;
      const rate = isSame ? (total - (before.counters[group]?.[name] ?? 0)) / seconds : 0;
      const one = state.rates.get(key) ?? { total, rates: [] };
      one.total = total;
      one.rates = [...one.rates, rate].slice(-KEPT_S);
      state.rates.set(key, one);
    }
  }
}

const moving = (state) =>
  [...state.rates].filter(([, one]) => one.rates.some((rate) => rate > 0)).map(([name, one]) => ({ name, ...one }));

// ---- who is around: nodes on rows, edges between them ----------------------------------------

function graph(state) {
  const node = state.view?.node;
  if (!node) return { rows: [], edges: [], left: 0 };
  return node.role === "rsu" ? treeOf(node) : aroundOf(node);
}

const GRAPH_MAX = 48;

// An RSU and the vehicles behind it, each under the one it sends through.
function treeOf(node) {
  const rows = [[{ id: node.id, kind: "rsu", isSelf: true, note: "this RSU" }]];
  const edges = [];
  const obus = node.obus.filter((obu) => obu.standing !== "gone");
  const depth = (obu) => (obu.way ? obu.way.length + 1 : 1);
  const shown = obus.slice().sort((a, b) => depth(a) - depth(b)).slice(0, GRAPH_MAX);
  const has = new Set([node.id, ...shown.map((obu) => obu.id)]);
  for (const obu of shown) {
    const row = depth(obu);
    while (rows.length <= row) rows.push([]);
    const way = obu.way ? (obu.standing === "attached" ? "used" : "standby") : "refused";
    const note = obu.way ? obu.standing : "no way to it";
    rows[row].push({ id: obu.id, kind: "obu", note });
    const above = obu.way ? obu.way.at(-1) ?? node.id : obu.upstream;
    if (has.has(above)) edges.push({ from: obu.id, to: above, kind: way, note: obu.standing });
  }
  // Whoever sends through the same one stands side by side.
  for (let row = 1; row < rows.length; row++) {
    const place = new Map(rows[row - 1].map((one, at) => [one.id, at]));
    const above = (one) => place.get(edges.find((edge) => edge.from === one.id)?.to) ?? 0;
    rows[row].sort((a, b) => above(a) - above(b) || (a.id < b.id ? -1 : 1));
  }
  return { rows, edges, left: obus.length - shown.length };
}

// An OBU between the RSUs it knows and those that send through it.
function aroundOf(node) {
  const rank = { used: 0, standby: 1, usable: 2, refused: 3 };
  const ways = new Map();
  const rsus = new Map(node.routes.map((route) => [route.rsu, route]));
  for (const route of node.routes) {
    for (const candidate of route.candidates) {
      const [word] = standing(route, candidate);
      const kind = word === "in use" ? "used" : word === "standby" ? "standby" : candidate.obstacles.length ? "refused" : "usable";
      const known = ways.get(candidate.id);
      if (!known || rank[kind] < rank[known.kind]) ways.set(candidate.id, { route, candidate, kind, word });
    }
  }
  const isChild = new Set(node.neighbours.filter((one) => one.is_child).map((one) => one.id));
  for (const child of node.children) isChild.add(child.id);
  const best = (id) => rank[ways.get(id)?.kind] ?? 4;
  const ids = new Set([...node.neighbours.map((one) => one.id), ...ways.keys()]);
  const others = [...ids].filter((id) => !rsus.has(id)).sort((a, b) => best(a) - best(b) || (a < b ? -1 : 1));
  const shown = others.slice(0, GRAPH_MAX / 2);
  const note = (id) => ways.get(id)?.word ?? "heard";
  const row = (list) => list.map((id) => ({ id, kind: "obu", note: isChild.has(id) ? "sends through us" : note(id) }));
  const top = [...rsus.values()].map((route) => ({
    id: route.rsu, kind: "rsu", note: route.standing === "no-upstream" ? "no way" : route.standing.replaceAll("-", " "),
  }));
  const self = [{ id: node.id, kind: "obu", isSelf: true, note: "this OBU" }];
  const rows = [top, row(shown.filter((id) => !isChild.has(id))), self, row(shown.filter((id) => isChild.has(id)))];
  const on = new Set(rows.flat().map((one) => one.id));
  const edges = [];
  for (const [id, { route, candidate, kind, word }] of ways) {
    if (!on.has(id)) continue;
    if (!isChild.has(id)) edges.push({ from: node.id, to: id, kind, note: word });
    const above = candidate.via ?? route.rsu;
    if (id !== route.rsu && above !== node.id && on.has(above)) {
      edges.push({ from: id, to: above, kind: kind === "refused" ? "refused" : kind === "used" ? "used" : "usable", note: "" });
    } else if (id !== route.rsu && above !== node.id && on.has(route.rsu)) {
      edges.push({ from: id, to: route.rsu, kind: "refused", note: "more hops" });
    }
  }
  for (const id of shown.filter((one) => isChild.has(one))) edges.push({ from: id, to: node.id, kind: "used", note: "" });
  return { rows: rows.filter((one) => one.length), edges, left: others.length - shown.length };
}

// ---- where they are: metres east and north of some place ------------------------------------

const METRES_PER_DEGREE = 111195;

// On a map of some kilometres the Earth is flat.
function metres(origin, at) {
  const around = ((at.lon - origin.lon + 540) % 360) - 180;
  return [around * METRES_PER_DEGREE * Math.cos((origin.lat * Math.PI) / 180), (at.lat - origin.lat) * METRES_PER_DEGREE];
}

// Who is where, and the ways between those of whom it is known; `origin` is a place on Earth.
function mapOf(state, origin) {
  const node = state.view?.node;
  const spots = [];
  const add = (id, kind, at, more) => {
    if (!at || spots.some((spot) => spot.id === id)) return;
    const [x, y] = metres(origin, { lat: at.latitude_deg ?? at.lat, lon: at.longitude_deg ?? at.lon });
    spots.push({ id, kind, x, y, age: at.age_ms ?? at.age ?? null, accuracy: at.accuracy_m ?? at.accuracy ?? null, note: "", name: short(id), ...more });
  };
  if (!node || !origin) return { spots, ways: [], trail: [] };
  add(node.id, node.role === "rsu" ? "rsu" : "obu", state.fix, { isSelf: true, note: "this node" });
  for (const route of node.routes) add(route.rsu, "rsu", route.position);
  for (const obu of node.obus) add(obu.id, "obu", obu.position, { note: obu.standing });
  for (const near of node.neighbours) add(near.id, "obu", near.position);
  const known = new Set(spots.map((spot) => spot.id));
  const ways = graph(state).edges.filter((edge) => known.has(edge.from) && known.has(edge.to));
  return { spots, ways, trail: state.trail.map((at) => metres(origin, at)) };
}

// Some place on Earth that is known, to count from.
function originOf(state) {
  const node = state.view?.node;
  if (!node) return null;
  const far = [...node.routes, ...node.obus, ...node.neighbours].find((one) => one.position)?.position;
  if (state.fix) return { lat: state.fix.lat, lon: state.fix.lon };
  return far ? { lat: far.latitude_deg, lon: far.longitude_deg } : null;
}

// The box around all of it and what it was before.
function boxed(box, points) {
  return points.reduce((sum, [x, y]) => (sum ? [Math.min(sum[0], x), Math.min(sum[1], y), Math.max(sum[2], x), Math.max(sum[3], y)] : [x, y, x, y]), box);
}

// From metres to pixels: the whole box with some room around it, or a part of it. `lens` says how
// much larger, and which place is in the middle.
function project(box, lens, [width, height]) {
  const room = 56;
  const [wide, high] = [Math.max(box[2] - box[0], 60), Math.max(box[3] - box[1], 60)];
  const scale = Math.min((width - room) / wide, (height - room) / high) * lens.zoom;
  const [cx, cy] = lens.centre ?? [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
  return { scale, to: ([x, y]) => [width / 2 + (x - cx) * scale, height / 2 - (y - cy) * scale] };
}

// A round length for the scale, at most so many metres.
function roundLength(most) {
  const ten = 10 ** Math.floor(Math.log10(most));
  return ten * (most >= 5 * ten ? 5 : most >= 2 * ten ? 2 : 1);
}

// ---- a simulated town: many nodes, looked at now and then -------------------------------------

// What a look says of a node, by name. Nodes are numbers: places in the list of all.
function rowOf([node, x, y, up, rsu, hops, routes]) {
  return { node, x, y, up, rsu, hops, routes };
}

function candidateOf(town, [node, used, obstacles, hops, costs, margins, heard, via]) {
  const [cost, advertised_cost, link_cost, relay_cost] = costs;
  const [margin, margin_needed, better_for_ms] = margins;
  const [heard_ms, heard_ratio, signal_dbm, signal_ahead_dbm, proven_ms, strain_nat] = heard;
  return {
    id: town.nodes[node][0], is_used: used === 1, obstacles, hops, cost, advertised_cost, link_cost, relay_cost, margin, margin_needed, better_for_ms,
    heard_ms, heard_ratio, signal_dbm, signal_ahead_dbm, proven_ms, strain_nat, via: via === null ? null : town.nodes[via][0],
  };
}

// The relays from the RSU down to this node, or null if they do not lead there.
function wayDown(town, rows, row) {
  const way = [];
  for (let at = row.up; at !== row.rsu; at = rows.get(at).up) {
    if (!rows.has(at) || way.length > 32) return null;
    way.unshift(town.nodes[at][0]);
  }
  return way;
}

// One of the nodes as it would show itself, for all that shows a node.
function townView(town, look, node) {
  const rows = new Map(look.nodes.map(rowOf).map((row) => [row.node, row]));
  const row = rows.get(node);
  if (!row) return null;
  const [id, name, role] = town.nodes[node];
  const idOf = (at) => (at === null ? null : town.nodes[at][0]);
  const changes = (town.changes[node] ?? []).filter((change) => change.at_unix_ms <= look.at);
  const routes = (row.routes ?? []).map(([rsu, standing, heard_ms, obus, candidates]) => ({
    rsu: idOf(rsu), standing, heard_ms, obus, position: null, candidates: candidates.map((one) => candidateOf(town, one)),
  }));
  const all = [...rows.values()];
  const children = all.filter((one) => one.up === node).map((one) => ({ id: idOf(one.node) }));
  const near = new Map();
  for (const one of routes.flatMap((route) => route.candidates)) near.set(one.id, { id: one.id, mac: one.id, heard_ms: one.heard_ms });
  for (const child of children) near.set(child.id, { mac: child.id, heard_ms: null, ...near.get(child.id), id: child.id, is_child: true });
  const neighbours = [...near.values()].map((one) => ({ loss_rx_ratio: null, round_trip_us: null, is_child: false, position: null, ...one }));
  const behind = all.filter((one) => one.rsu === node && one.up !== null);
  const obus = behind.map((one) => ({
    id: idOf(one.node), standing: "attached", upstream: idOf(one.up), way: wayDown(town, rows, one), clients: 0, is_complete: true,
    heard_ms: null, round_trip_us: null, position: null,
  }));
  const attached = row.up === null ? null : { rsu: idOf(row.rsu), upstream: idOf(row.up), hops: row.hops, since_ms: changes.length ? look.at - changes.at(-1).at_unix_ms : null };
  return {
    uptime_ms: look.at, counters: {}, radio: { name: name, is_up: true }, tap: { name, is_up: true },
    node: { id, role, attached, routes, neighbours, children, obus: role === "rsu" ? obus : [], clients: [], position: null },
  };
}

// The town at a look, seen from one of its nodes if one is chosen.
function townAt(town, at, chosen) {
  const look = town.looks[at];
  const focus = town.nodes.findIndex(([id]) => id === chosen);
  const state = { ...blank(), at: look.at, town, view: focus < 0 ? null : townView(town, look, focus) };
  const rows = look.nodes.map(rowOf);
  const id = (node) => town.nodes[node][0];
  const spots = rows.map(({ node, x, y, up, hops }) => {
    const [, name, kind] = town.nodes[node];
    const note = kind === "rsu" ? "" : up === null ? "no way" : `${hops} ${hops === 1 ? "hop" : "hops"}, via ${town.nodes[up][1]}`;
    return { id: id(node), name, kind, x, y, age: null, accuracy: null, note, mark: kind === "obu" && up === null ? "lost" : "" };
  });
  const there = new Set(spots.map((spot) => spot.id));
  const ways = rows.filter((row) => row.up !== null).map((row) => ({ from: id(row.node), to: id(row.up), kind: "used" }));
  for (const edge of state.view ? graph(state).edges : []) {
    if (edge.from === chosen && edge.kind !== "used") ways.push(edge);
  }
  const trail = [];
  for (const before of focus < 0 ? [] : town.looks.slice(0, at + 1)) {
    const row = before.nodes.find((one) => one[0] === focus);
    if (row) trail.push([row[1], row[2]]);
  }
  if (state.view) {
    const until = (list) => (list ?? []).filter((one) => one.at_unix_ms <= look.at);
    Object.assign(state, { node: chosen, role: state.view.node.role, changes: until(town.changes[focus]), events: until(town.events[focus]) });
    spots.find((spot) => spot.id === chosen).isSelf = true;
  }
  const vehicles = spots.filter((spot) => spot.kind === "obu");
  const lost = vehicles.filter((spot) => spot.mark).length;
  const legend = "Squares are RSUs, dots vehicles; lines lead to whom each sends through. Dashed red: no way. Tap one for what it can choose from (thin), what not (dotted), and why.";
  state.map = { spots, ways: ways.filter((way) => there.has(way.from) && there.has(way.to)), trail, box: town.box, legend };
  state.routed = [vehicles.length - lost, vehicles.length];
  return state;
}

if (typeof module !== "undefined") {
  module.exports = { names, townAt, metres, mapOf, originOf, boxed, project, roundLength, grown, OBSTACLES, STANDINGS, CAUSES, span, standing, reasons, changeSaid, eventSaid, place, blank, take, moving, graph, stateAt };
}

// ---- drawing ------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}
const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

let state = blank();
let chosen = null;
let chosenChange = null;
// Where there is a time bar: makes the state anew, as another node is chosen.
let remake = null;

// Puts something else into an element, and gives the focus back to what had it.
function refill(body, ...children) {
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset?.key : null;
  const scrolled = body.querySelector(".scroll");
  const at = scrolled ? [scrolled.scrollTop, scrolled.scrollLeft] : null;
  body.replaceChildren(...children.flat(Infinity).filter(Boolean));
  const scroll = body.querySelector(".scroll");
  if (at && scroll) [scroll.scrollTop, scroll.scrollLeft] = at;
  if (focused) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

function draw(id, ...children) {
  const section = document.getElementById(id);
  refill(section.querySelector(".body"), ...children);
  return section;
}

// While a finger or a button is down nothing is drawn anew by itself: what it is on would be gone
// when it goes up, and a click is only one on what it went down on.
let isPressed = false;
let isLate = false;

function press() {
  isPressed = true;
}

// The click comes after this, and goes first.
function lift() {
  setTimeout(() => {
    isPressed = false;
    if (isLate) render();
  });
}

// A button may go up where the page does not hear of it, as over a menu.
function moved(event) {
  if (isPressed && !event.buttons) lift();
}

// There is news.
function refresh() {
  isLate = isPressed;
  if (!isLate) render();
}

function choose(id, isFar) {
  chosenChange = null;
  chosen = id;
  history.replaceState(null, "", `#${id}`);
  if (remake) state = remake();
  render();
  // On a phone the reasons are below the picture.
  if (isFar) document.getElementById("detail").scrollIntoView({ block: "nearest" });
}

function chooseChange(number) {
  chosenChange = number;
  history.replaceState(null, "", `#change-${number}`);
  render();
  document.getElementById("detail").scrollIntoView({ block: "nearest" });
}

const nodeButton = (id, where) =>
  h("button", { class: `link mono${id === chosen ? " sure" : ""}`, title: id, "data-key": `${where}-${id}`, onclick: () => choose(id) }, short(id));

// Columns are names with a kind: "num" at the right, "minor" left out on a phone, "say" a sentence.
function table(caption, columns, rows, empty, kind = "cards") {
  if (!rows.length) return h("p", { class: "dim" }, empty);
  const head = columns.map(([name, kind]) => h("th", { scope: "col", class: kind ?? null }, name));
  const body = rows.map((row) => {
    const cells = row.cells.map((cell, at) => h("td", { "data-name": columns[at][0], class: columns[at][1] ?? null }, cell));
    return h("tr", { class: row.isChosen ? "chosen" : null }, cells);
  });
  return h("div", { class: "scroll" },
    h("table", { class: kind }, caption ? h("caption", {}, caption) : null, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

function drawHead() {
  const { view, problems, role, node } = state;
  const roles = { obu: "OBU (vehicle)", rsu: "RSU (road side)" };
  document.getElementById("who").textContent = node ? `${roles[role] ?? "Node"} ${node}` : "V2X node";
  document.title = node ? `${(role ?? "node").toUpperCase()} ${short(node)}` : "V2X node";
  const attached = view?.node.attached;
  const where = role !== "obu" ? `${view?.node.obus.filter((obu) => obu.standing === "attached").length ?? 0} vehicles attached`
    : attached ? `attached to ${place(attached)} for ${span(attached.since_ms)}` : "attached to no RSU";
  if (state.town) return drawTownHead();
  document.getElementById("sub").textContent = view ? `${where} · ${view.tap.name} · up ${span(view.uptime_ms)}` : "connecting …";
  const isIll = problems.some((problem) => problem.is_fatal);
  const badge = document.getElementById("health");
  badge.textContent = !view ? "…" : isIll ? "✖ ill" : problems.length ? "! well, with problems" : "✔ well";
  badge.className = `badge ${!view ? "" : isIll ? "bad" : problems.length ? "warn" : "good"}`;
  const said = problems.map((problem) => h("li", {},
    h("strong", { class: problem.is_fatal ? "bad" : "warn" }, problem.is_fatal ? "Nothing gets through: " : "Problem: "),
    problem.text, h("div", { class: "dim" }, `What to do: ${problem.cure}`)));
  draw("problems", h("ul", { class: "plain" }, said)).hidden = !problems.length;
}

function drawTownHead() {
  const { town, routed: [routed, all], node, view } = state;
  document.getElementById("who").textContent = `Town ${town.name}, seed ${town.seed}`;
  document.title = `${town.name} · v2xsim`;
  const attached = view?.node.attached;
  const where = !view ? "tap a vehicle or an RSU" : state.role === "rsu" ? `${view.node.obus.length} vehicles attached` : `attached to ${place(attached)}`;
  document.getElementById("sub").textContent = node ? `${short(node)}: ${where}` : where;
  const badge = document.getElementById("health");
  badge.textContent = `${routed} of ${all} have a way`;
  badge.className = `badge ${routed === all ? "good" : "warn"}`;
  draw("problems", h("ul", { class: "plain" }, town.broken ? h("li", {}, h("strong", { class: "bad" }, "A rule was broken, and the run ended: "), town.broken) : null)).hidden = !town.broken;
}

const COLUMN = 150;
const ROW = 92;

function drawTopology() {
  const { rows, edges, left } = graph(state);
  if (!rows.length) return void draw("topology", h("p", { class: "dim" }, "nothing is known yet"));
  const widest = Math.max(...rows.map((row) => row.length), 2);
  const [width, height] = [widest * COLUMN, rows.length * ROW];
  const spot = new Map();
  rows.forEach((row, y) => row.forEach((one, x) => {
    // The words are on the right of each.
    if (!spot.has(one.id)) spot.set(one.id, [(width * (x + 0.5)) / row.length - COLUMN / 4, y * ROW + 26]);
  }));
  const lines = edges.map((edge) => {
    const [[x1, y1], [x2, y2]] = [spot.get(edge.from), spot.get(edge.to)];
    // Between two of a row: a bow over them.
    const bow = Math.abs(y1 - y2) < 5 ? 46 : 0;
    return s("path", { class: `edge ${edge.kind}`, d: `M${x1} ${y1} Q${(x1 + x2) / 2} ${(y1 + y2) / 2 - bow} ${x2} ${y2}` },
      s("title", {}, `${short(edge.from)} to ${short(edge.to)}: ${edge.note || edge.kind}`));
  });
  const dots = rows.flat().map((one) => {
    const [x, y] = spot.get(one.id);
    const shape = one.kind === "rsu" ? s("rect", { x: -22, y: -18, width: 44, height: 36, rx: 4 }) : s("circle", { r: 19 });
    return s("g", {
      class: `node${one.isSelf ? " self" : ""}${one.id === chosen ? " chosen" : ""}`, transform: `translate(${x} ${y})`,
      tabindex: 0, role: "button", "data-key": `dot-${one.id}`, "aria-label": `${one.kind} ${one.id}: ${one.note}`,
      onclick: () => choose(one.id, true),
      onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(one.id, true)),
    },
    // From the shape to its words there is no gap that a finger could hit.
    s("title", {}, one.id), s("rect", { class: "reach", x: -22, y: -19, width: 54, height: 38 }), shape,
    s("text", { "text-anchor": "middle", y: 4 }, one.kind === "rsu" ? "RSU" : "OBU"),
    s("g", { class: "words" },
      s("text", { x: 27, y: -2, class: "mono halo" }, short(one.id)),
      s("text", { x: 27, y: 13, class: "dim halo" }, one.note)));
  });
  const legend = "Thick line: in use. Dashed: standby. Thin: usable. Dotted: not usable. Tap a node to see why.";
  draw("topology",
    h("div", { class: "scroll" }, s("svg", { class: "fit", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "nodes and ways" }, lines, dots)),
    h("p", { class: "dim small" }, left > 0 ? `${legend} ${left} more are in the table.` : legend));
}

// ---- drawing the map ------------------------------------------------------------------------

let origin = null;
let box = null;
const lens = { zoom: 1, centre: null };
const NAMES_MAX = 30;

const mapNow = () => state.map ?? mapOf(state, origin);

function zoomBy(times) {
  lens.zoom = Math.min(Math.max(lens.zoom * times, 1), 256);
  const on = mapNow().spots.find((spot) => spot.id === chosen);
  if (lens.zoom === 1) lens.centre = null;
  else if (on && times > 1) lens.centre = [on.x, on.y];
  drawMap();
}

// A finger or the mouse moves what is shown, once it is larger than the map. One that hardly moves
// is a tap.
const TAP_MAX = 8;

function dragged(event) {
  if (lens.zoom === 1 || event.button) return;
  const svg = event.currentTarget;
  const from = [event.clientX, event.clientY];
  const scale = Number(svg.dataset.scale);
  const [cx, cy] = lens.centre ?? [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
  let isDrag = false;
  const move = (at) => {
    if (at.pointerId !== event.pointerId) return;
    const [x, y] = [at.clientX - from[0], at.clientY - from[1]];
    isDrag ||= Math.hypot(x, y) > TAP_MAX;
    if (!isDrag) return;
    svg.setPointerCapture(event.pointerId);
    lens.centre = [cx - x / scale, cy + y / scale];
    drawMap();
  };
  const end = (at) => {
    if (at.pointerId !== event.pointerId) return;
    svg.removeEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) removeEventListener(name, end);
  };
  svg.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, end);
}

// The picture itself stays while what is in it is drawn anew: a finger that moves it is on it.
let picture = null;

function pictureOf(section) {
  if (picture) return picture;
  const button = (text, label, key, act) => h("button", { "aria-label": label, title: label, "data-key": key, onclick: act }, text);
  const svg = s("svg", { class: "map", role: "group", "aria-label": "map", onpointerdown: dragged });
  const legend = h("p", { class: "dim small" });
  const zoom = h("div", { class: "zoom" },
    button("+", "larger", "zoom-in", () => zoomBy(2)), button("−", "smaller", "zoom-out", () => zoomBy(0.5)),
    button("all", "show all", "zoom-all", () => { box = state.map?.box ?? null; zoomBy(0); }));
  section.querySelector(".body").replaceChildren(h("div", { class: "mapbox" }, svg), h("div", { class: "under" }, zoom, legend));
  picture = { svg, legend };
  return picture;
}

function drawMap() {
  const section = document.getElementById("map");
  origin = state.map ? null : origin ?? originOf(state);
  const { spots, ways, trail } = mapNow();
  section.hidden = !spots.length;
  if (!spots.length) return;
  box = boxed(box, [...spots.map((spot) => [spot.x, spot.y]), ...trail]);
  const width = Math.max(section.querySelector(".body").clientWidth, 280);
  const height = Math.round(Math.min(width * 0.8, 520));
  const { scale, to } = project(box, lens, [width, height]);
  const at = new Map(spots.map((spot) => [spot.id, to([spot.x, spot.y])]));
  const isIn = ([x, y]) => x > -20 && y > -20 && x < width + 20 && y < height + 20;
  // The chosen one is drawn last, over those that stand in the same place.
  const inside = spots.filter((spot) => isIn(at.get(spot.id))).sort((a, b) => (a.id === chosen) - (b.id === chosen));
  const isNamed = (spot) => inside.length <= NAMES_MAX || spot.isSelf || spot.kind === "rsu" || spot.id === chosen;
  const lines = ways.map((way) => {
    const [[x1, y1], [x2, y2]] = [at.get(way.from), at.get(way.to)];
    const isOfChosen = way.from === chosen || way.to === chosen;
    return isIn([x1, y1]) || isIn([x2, y2]) ? s("line", { class: `edge ${way.kind}${spots.length > NAMES_MAX && !isOfChosen ? " fine" : ""}`, x1, y1, x2, y2 }) : null;
  });
  const small = spots.length > NAMES_MAX;
  const dots = inside.map((spot) => {
    const [x, y] = at.get(spot.id);
    const said = [spot.note, spot.age > 1500 ? `${span(spot.age)} ago` : ""].filter(Boolean).join(", ");
    // Words stand on the side where there is room for them.
    const word = x > width - 96 ? { x: -15, "text-anchor": "end" } : { x: 15 };
    const r = small && !spot.isSelf && spot.id !== chosen ? 5 : 9;
    return s("g", {
      class: `node${spot.isSelf ? " self" : ""}${spot.id === chosen ? " chosen" : ""}${spot.mark ? ` ${spot.mark}` : ""}`, transform: `translate(${x} ${y})`,
      tabindex: small && spot.kind !== "rsu" && spot.id !== chosen ? -1 : 0, role: "button", "data-key": `spot-${spot.id}`, "aria-label": `${spot.kind} ${spot.name}: ${said || "on the map"}`,
      onclick: () => choose(spot.id, true),
      onkeydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(spot.id, true)),
    },
    s("title", {}, `${spot.name} ${said}`), s("circle", { class: "reach", r: 16 }),
    spot.accuracy && spot.accuracy * scale > r ? s("circle", { class: "accuracy", r: Math.min(spot.accuracy * scale, width) }) : null,
    spot.kind === "rsu" ? s("rect", { x: -9, y: -9, width: 18, height: 18, rx: 2 }) : s("circle", { r }),
    isNamed(spot) ? s("g", { class: "words" },
      s("text", { ...word, y: said && !small ? -1 : 4, class: "mono halo" }, spot.name),
      said && !small ? s("text", { ...word, y: 13, class: "dim halo" }, said) : null) : null);
  });
  const metre = roundLength(110 / scale);
  const bar = s("g", { transform: `translate(10 ${height - 12})` },
    s("path", { class: "scale", d: `M0 -6 V0 H${metre * scale} V-6` }),
    s("text", { x: metre * scale + 8, y: 1, class: "halo" }, metre >= 1000 ? `${metre / 1000} km` : `${metre} m`));
  const path = trail.length > 1 ? s("polyline", { class: "trail", points: trail.map((one) => to(one).map((value) => value.toFixed(1)).join(",")).join(" ") }) : null;
  const { svg, legend } = pictureOf(section);
  svg.classList.toggle("zoomed", lens.zoom > 1);
  fill(svg, { width, height, viewBox: `0 0 ${width} ${height}`, "data-scale": scale }, []);
  refill(svg, path, lines, dots, bar, s("text", { x: width - 10, y: 20, "text-anchor": "end", class: "halo" }, "N ↑"));
  legend.textContent = state.map?.legend ?? "Squares are RSUs, dots vehicles, the full one is this node, with the way it took. Only who says where it is stands here.";
}

function candidateRows() {
  return (state.view?.node.routes ?? []).flatMap((route) => route.candidates.map((candidate) => {
    const [word, kind] = standing(route, candidate);
    return {
      isChosen: candidate.id === chosen,
      cells: [
        nodeButton(candidate.id, `via-${route.rsu}`), h("span", { class: "mono", title: route.rsu }, short(route.rsu)),
        h("span", { class: `state ${kind}` }, word), `${candidate.hops}`, fixed(candidate.cost, 2),
        candidate.margin === null ? "–" : `${fixed(candidate.margin, 2)} of ${fixed(candidate.margin_needed, 2)}`,
        percent(candidate.heard_ratio), candidate.signal_dbm === null ? "–" : `${fixed(candidate.signal_dbm, 0)} dBm`,
        span(candidate.heard_ms), reasons(route, candidate).join(" "),
      ],
    };
  }));
}

function drawCandidates() {
  const node = state.view?.node;
  const section = document.getElementById("candidates");
  if (node?.role === "rsu") {
    section.querySelector("h2").textContent = "Vehicles";
    const rows = node.obus.map((obu) => ({
      isChosen: obu.id === chosen,
      cells: [
        nodeButton(obu.id, "obu"), h("span", { class: "state" }, obu.standing),
        obu.way === null ? "no way" : obu.way.length ? obu.way.map(short).join(" › ") : "direct",
        `${obu.way === null ? "–" : obu.way.length + 1}`, `${obu.clients}${obu.is_complete ? "" : "?"}`, span(obu.heard_ms),
        obu.round_trip_us === null ? "–" : `${fixed(obu.round_trip_us / 1000, 1)} ms`,
      ],
    }));
    const columns = [["vehicle"], ["standing"], ["way down"], ["hops", "num minor"], ["clients", "num"], ["heard", "num"], ["round trip", "num minor"]];
    return void draw("candidates", table(null, columns, rows, "no vehicle has announced itself yet"));
  }
  section.querySelector("h2").textContent = "Candidates: through whom an RSU could be reached";
  const columns = [["neighbour"], ["to RSU"], ["state"], ["hops", "num minor"], ["score (cost)", "num"], ["margin", "num"], ["heard", "num"], ["signal", "num minor"], ["last word", "num minor"], ["why", "say"]];
  draw("candidates", table("Lower cost is better. Margin: so much cheaper than the one in use, of what is needed.", columns, candidateRows(), "no neighbour has advertised a way yet"));
}

const pairs = (list) => h("dl", {}, list.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

function detailOfChange(change) {
  const cost = change.cost;
  const choice = change.routes.flatMap((route) => route.candidates.map((candidate) => {
    const [word, kind] = standing(route, candidate);
    return h("li", {}, h("span", { class: "mono" }, short(candidate.id)), ` to RSU ${short(route.rsu)}, cost ${fixed(candidate.cost, 2)}: `,
      h("span", { class: `state ${kind}` }, word));
  }));
  return [
    h("p", {}, h("strong", {}, `Change ${change.number}, ${clock(change.at_unix_ms)}. `), `${changeSaid(change)}.`),
    pairs([["from", place(change.from)], ["to", place(change.to)], ["old one silent for", span(change.silence_ms)],
      ["gap", cost ? span(cost.gap_ms) : "not known yet, or the first"],
      ["frames", cost ? `${cost.lost} lost, ${cost.at_risk} at risk, ${cost.doubled} doubled` : "–"]]),
    h("p", { class: "dim" }, choice.length ? "There were, right after the decision:" : "What there was to choose from is kept of the last changes only."), h("ul", { class: "plain" }, choice),
  ];
}

function detailOfNode(id) {
  const node = state.view.node;
  if (id === node.id) {
    const attached = node.attached;
    const last = state.changes.at(-1);
    return [
      h("p", {}, h("strong", {}, state.town ? `${short(id)}. ` : "This node. "), node.role === "rsu" ? "Vehicles find it by its heartbeats."
        : attached ? `Attached to ${place(attached)}${last ? ` since change ${last.number}: ${changeSaid(last)}` : ""}.` : "Attached to no RSU."),
      state.town ? null : pairs([["boot", `${node.boot ?? "–"}`], ["radio", `${state.view.radio.name}, ${state.view.radio.is_up ? "up" : "down"}`],
        ["TAP", `${state.view.tap.name}, ${state.view.tap.is_up ? "up" : "down"}, MTU ${state.view.tap.mtu_bytes ?? "–"}`],
        ["neighbours", `${node.neighbours.length}`], ["clients", `${node.clients.length}`]]),
      node.routes.map((route) => h("p", {}, `RSU ${short(route.rsu)}: ${STANDINGS[route.standing] ?? route.standing}.`)),
    ];
  }
  const neighbour = node.neighbours.find((one) => one.id === id);
  const obu = node.obus.find((one) => one.id === id);
  const route = node.routes.find((one) => one.rsu === id);
  const said = [];
  if (route) said.push(h("p", {}, h("strong", {}, "RSU. "), `${STANDINGS[route.standing] ?? route.standing}; ${route.obus} vehicles; heard ${span(route.heard_ms)} ago.`));
  for (const to of node.routes) {
    for (const candidate of to.candidates.filter((one) => one.id === id)) {
      const [word, kind] = standing(to, candidate);
      said.push(h("p", {}, h("strong", { class: kind }, `To RSU ${short(to.rsu)}: ${word}. `), reasons(to, candidate).join(" ")));
      said.push(pairs([["cost", `${fixed(candidate.cost, 2)} = ${fixed(candidate.advertised_cost, 2)} its way + ${fixed(candidate.link_cost, 2)} our link + ${fixed(candidate.relay_cost, 2)} as relay`],
        ["heartbeats heard", percent(candidate.heard_ratio)], ["strain", `${fixed(candidate.strain_nat, 2)} nat`],
        ["signal", candidate.signal_dbm === null ? "the radio does not tell" : `${fixed(candidate.signal_dbm, 0)} dBm, going to ${fixed(candidate.signal_ahead_dbm, 0)}`],
        ["hears us, shown", candidate.proven_ms === null ? "never" : `${span(candidate.proven_ms)} ago`]]));
    }
  }
  if (obu) {
    said.push(h("p", {}, h("strong", {}, `Vehicle, ${obu.standing}. `), obu.way === null ? "There is no way down to it: a relay between is not known, or silent."
      : obu.way.length ? `The way down: ${obu.way.map(short).join(" › ")}.` : "It is heard directly."));
    const clients = node.clients.filter((client) => client.obu === id).map((client) => client.mac);
    said.push(pairs([["sends through", short(obu.upstream)], ["last heard", span(obu.heard_ms)], ["clients", clients.length ? clients.join(", ") : `${obu.clients}`]]));
  }
  if (neighbour) {
    said.push(pairs([["address", neighbour.mac], ["last heard", `${span(neighbour.heard_ms)} ago`], ["heartbeats lost", percent(neighbour.loss_rx_ratio)],
      ["round trip", neighbour.round_trip_us === null ? "–" : `${fixed(neighbour.round_trip_us / 1000, 1)} ms`],
      ["sends through us", neighbour.is_child ? "yes" : "no"]]));
  }
  return said.length ? said : [h("p", { class: "dim" }, "It is not known here any more.")];
}

function drawDetail() {
  if (!state.view) return void draw("detail", h("p", { class: "dim" }, state.town && chosen ? "It is not there now." : state.town ? "Tap a vehicle or an RSU on the map." : "nothing is known yet"));
  const change = state.changes.find((one) => one.number === chosenChange);
  const id = chosen ?? state.view.node.id;
  const head = change ? null : h("p", { class: "mono" }, id);
  draw("detail", head, change ? detailOfChange(change) : detailOfNode(id));
}

function drawGaps() {
  const costed = state.changes.filter((change) => change.cost);
  if (!costed.length) return void draw("gaps", h("p", { class: "dim" }, "no hand-over yet"));
  const shown = costed.slice(-24);
  const [height, step, foot] = [170, 40, 34];
  const width = Math.max(shown.length * step + 90, 320);
  const top = Math.max(1000, ...shown.map((change) => change.cost.gap_ms));
  const y = (ms) => height - (Math.log10(1 + ms) / Math.log10(1 + top)) * (height - 22);
  const guides = [[PLANNED_MS, "planned: 50 ms"], [SILENT_MS, "silent death: 300 ms"]].map(([ms, text]) => [
    s("line", { class: "guide", x1: 0, x2: width, y1: y(ms), y2: y(ms) }), s("text", { class: "dim", x: width - 4, y: y(ms) - 4, "text-anchor": "end" }, text)]);
  const bars = shown.map((change, at) => {
    const ms = change.cost.gap_ms;
    const kind = ms <= PLANNED_MS ? "good" : ms > SILENT_MS ? "bad" : "";
    return [s("rect", { class: `bar ${kind}`, x: at * step + 8, width: step - 16, y: Math.min(y(ms), height - 2), height: Math.max(height - y(ms), 2) },
      s("title", {}, `change ${change.number}: ${ms} ms, ${changeSaid(change)}`)),
    s("text", { x: at * step + step / 2, y: y(ms) - 4, "text-anchor": "middle" }, `${ms}`),
    s("text", { class: "dim", x: at * step + step / 2, y: height + 16, "text-anchor": "middle" }, `#${change.number}`)];
  });
  const gaps = costed.map((change) => change.cost.gap_ms);
  const none = gaps.filter((ms) => ms === 0).length;
  draw("gaps",
    h("div", { class: "scroll" }, s("svg", { width, height: height + foot, role: "img", "aria-label": `gaps in milliseconds: ${gaps.slice(-24).join(", ")}` }, guides, bars)),
    h("p", {}, `${gaps.length} hand-overs: ${none} without a gap, the longest ${Math.max(...gaps)} ms. Milliseconds, on a scale that shows small ones too.`));
}

function drawChanges() {
  const rows = state.changes.slice().reverse().map((change) => ({
    isChosen: change.number === chosenChange,
    cells: [
      h("button", { class: "link", "data-key": `change-${change.number}`, onclick: () => chooseChange(change.number) }, `#${change.number} ${clock(change.at_unix_ms)}`),
      `${place(change.from)} → ${place(change.to)}`, change.cost ? span(change.cost.gap_ms) : "–",
      change.cost ? `${change.cost.lost}` : "–", changeSaid(change),
    ],
  }));
  draw("changes", table(null, [["when"], ["from → to"], ["gap", "num"], ["lost", "num"], ["why", "say"]], rows, "the upstream has not changed yet"));
}

function drawCounters() {
  const rows = moving(state).map(({ name, total, rates }) => {
    const most = Math.max(...rates, 1e-9);
    const points = rates.map((rate, at) => `${(at * 120) / Math.max(rates.length - 1, 1)},${22 - (rate / most) * 20}`).join(" ");
    return { cells: [h("span", { class: "mono" }, name), `${fixed(rates.at(-1), rates.at(-1) < 10 ? 1 : 0)}/s`, `${total}`,
      s("svg", { width: 120, height: 24, role: "img", "aria-label": `up to ${fixed(most, 1)} a second in the last minute` }, s("polyline", { class: "spark", points }))] };
  });
  draw("counters", table(null, [["counter"], ["now", "num"], ["total", "num minor"], ["last minute"]], rows, "nothing has moved yet", "narrow"));
}

function drawEvents() {
  const rows = state.events.slice(-40).reverse().map((event) => {
    const [what, said] = eventSaid(event);
    return h("li", {}, h("span", { class: "dim" }, `${clock(event.at_unix_ms)} #${event.number} `), h("strong", {}, what), ` ${said}`);
  });
  const missed = state.missed ? h("p", { class: "warn" }, `${state.missed} events were missed: this browser read too slowly.`) : null;
  draw("events", missed, rows.length ? h("div", { class: "scroll" }, h("ul", { class: "plain small" }, rows)) : h("p", { class: "dim" }, "nothing has happened yet"));
}

function render() {
  isLate = false;
  // An RSU has no upstream that could change.
  for (const id of ["gaps", "changes"]) document.getElementById(id).hidden = state.role === "rsu";
  // In a town there is much of which nobody is chosen, and no counters.
  if (state.town) {
    for (const id of ["gaps", "changes"]) document.getElementById(id).hidden ||= !state.view;
    for (const id of ["topology", "candidates", "events"]) document.getElementById(id).hidden = !state.view;
    document.getElementById("counters").hidden = true;
  }
  drawHead();
  drawMap();
  drawTopology();
  drawDetail();
  drawCandidates();
  drawGaps();
  drawChanges();
  drawCounters();
  drawEvents();
}

// ---- where it comes from --------------------------------------------------------------------

function live() {
  const link = document.getElementById("link");
  let heard = 0;
  const listen = new EventSource("/events?topics=view,events,changes,problems");
  const hear = (isWhole) => (message) => {
    heard = Date.now();
    take(state, JSON.parse(message.data), isWhole);
    refresh();
  };
  listen.addEventListener("now", hear(true));
  listen.addEventListener("update", hear(false));
  listen.addEventListener("missed", (message) => { state.missed += JSON.parse(message.data).missed; });
  setInterval(() => {
    const age = Date.now() - heard;
    // The node speaks once a second.
    const isLive = heard && age < 3500;
    link.textContent = isLive ? "● live" : heard ? `○ no word for ${span(age)}: what is shown is old` : "○ connecting";
    link.className = isLive ? "good" : "bad";
  }, 500);
}

// ---- a recording --------------------------------------------------------------------------

const STEPS_FOR_RATES = KEPT_S + 1;

// How it stood at a look: everything that had happened, and the counters of the last minute.
function stateAt(looks, at) {
  const then = blank();
  for (let step = 0; step <= at; step++) {
    const look = looks[step];
    take(then, step > at - STEPS_FOR_RATES ? look : { ...look, view: null }, false);
  }
  return then;
}

// `make` says how it stood at a look.
function play(looks, make, title) {
  const link = document.getElementById("link");
  if (!looks.length) {
    link.textContent = "an empty recording";
    return;
  }
  let at = 0;
  let timer = null;
  const when = (look) => looks[look].at_unix_ms ?? looks[look].at;
  const bar = h("input", { type: "range", min: 0, max: looks.length - 1, value: 0, "aria-label": "time", oninput: () => go(Number(bar.value)) });
  const time = h("span", { class: "small" });
  const speed = h("select", { "aria-label": "speed" }, [1, 5, 20, 100].map((times) => h("option", { value: times }, `${times}×`)));
  const button = h("button", { onclick: () => (timer ? stop() : start()) }, "▶ play");
  const go = (to, show = render) => {
    at = Math.max(0, Math.min(to, looks.length - 1));
    remake = () => make(at);
    state = remake();
    bar.value = at;
    const seconds = (when(at) - when(0)) / 1000;
    const whole = ((when(looks.length - 1) - when(0)) / 1000).toFixed(1);
    time.textContent = `${state.town ? "" : `${clock(when(at))}, `}${seconds.toFixed(1)} s of ${whole} s`;
    bar.setAttribute("aria-valuetext", time.textContent);
    show();
  };
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    button.textContent = "▶ play";
  };
  const next = () => {
    if (at + 1 >= looks.length) return void stop();
    timer = setTimeout(() => { go(at + 1, refresh); next(); }, (when(at + 1) - when(at)) / Number(speed.value));
  };
  const start = () => {
    if (at + 1 >= looks.length) go(0);
    button.textContent = "❚❚ pause";
    next();
  };
  link.textContent = title;
  document.querySelector("header").append(h("div", { class: "timebar" }, button, speed, bar, time));
  go(0);
}

function fromHash() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const change = /^change-(\d+)$/.exec(hash);
  chosenChange = change ? Number(change[1]) : null;
  chosen = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(hash) ? hash : null;
}

if (typeof document !== "undefined") {
  fromHash();
  addEventListener("hashchange", () => { fromHash(); if (remake) state = remake(); render(); });
  addEventListener("resize", () => drawMap());
  addEventListener("pointerdown", press, true);
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, lift, true);
  addEventListener("pointermove", moved, true);
  const recording = document.getElementById("recording");
  render();
  const town = document.getElementById("town");
  if (recording) {
    const looks = JSON.parse(recording.textContent);
    for (const look of looks) {
      if (!look.view) continue;
      const one = { ...blank(), view: look.view, fix: fixOf(look) };
      origin ??= originOf(one);
      if (origin) box = boxed(box, mapOf(one, origin).spots.map((spot) => [spot.x, spot.y]));
    }
    play(looks, (at) => stateAt(looks, at), looks.length ? `recording of ${new Date(looks[0].at_unix_ms).toLocaleDateString()}` : "");
  } else if (town) {
    const all = JSON.parse(town.textContent);
    for (const [id, name] of all.nodes) names.set(id, name);
    for (const look of all.looks) all.box = boxed(all.box, look.nodes.map((row) => [row[1], row[2]]));
    play(all.looks, (at) => townAt(all, at, chosen), "a simulation: v2xsim");
  } else live();
}
