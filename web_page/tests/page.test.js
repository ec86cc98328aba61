"use strict";
const test = require("node:test");
const assert = require("node:assert");
const page = require("../assets/page.js");

const ID = "02:0b:00:00:01:";

const candidate = (n, more) => ({
  id: ID + n, is_used: false, obstacles: [], hops: 2, cost: 2.5, margin: null, margin_needed: null,
  better_for_ms: null, via: ID + "01", ...more,
});

const route = (n, standing, candidates) => ({ rsu: ID + n, standing, candidates });

function view(node, counters, uptime_ms) {
  return {
    uptime_ms,
    counters: { node: counters, radio: {} },
    node: { id: ID + "09", role: "obu", attached: null, neighbours: [], routes: [], clients: [], obus: [], children: [], ...node },
  };
}

test("a candidate says how it stands in a word and why in a sentence", () => {
  const to = route("01", "in-use", []);
  const used = candidate("02", { is_used: true });
  assert.deepEqual(page.standing(to, used), ["in use", "good"]);
  assert.match(page.reasons(to, used)[0], /In use: frames to RSU 01:01/);
  assert.deepEqual(page.standing({ ...to, standing: "standby" }, used)[0], "standby");
  const refused = candidate("03", { obstacles: ["one-way", "through-us"] });
  assert.deepEqual(page.standing(to, refused), ["one way, through us", "bad"]);
  assert.match(page.reasons(to, refused)[0], /^Not used: .*hears us; it sends through us.*\.$/);
  const said = (margin, margin_needed, better_for_ms = null) =>
    page.reasons(to, candidate("04", { margin, margin_needed, better_for_ms }))[0];
  assert.match(said(-0.5, 0.3), /costs 0.50 more/);
  assert.match(said(0.2, 0.3), /Cheaper by 0.20, and 0.30 are needed/);
  assert.match(said(0.4, 0.3, 1500), /Cheaper by 0.40 for 1 s/);
  assert.match(page.reasons(to, candidate("05", { obstacles: ["new-word"] }))[0], /new-word/);
});

test("a change is explained by what it turned out to be", () => {
  const change = { cause: "fading", silence_ms: 230, cost: { cause: "dead" } };
  assert.equal(page.changeSaid(change), "dead: the upstream fell silent for 230 ms");
  assert.match(page.changeSaid({ ...change, cost: null }), /^fading: /);
  assert.equal(page.place(null), "nowhere");
  assert.equal(page.place({ rsu: ID + "01", upstream: ID + "02", hops: 2 }), "RSU 01:01 via 01:02 (2 hops)");
});

test("an event is said with its figures, also one that nobody knew", () => {
  const to = { rsu: ID + "01", upstream: ID + "01", hops: 1 };
  const changed = { number: 1, at_unix_ms: 2, event: "upstream-changed", from: null, to, cause: "first", silence_ms: 0 };
  assert.deepEqual(page.eventSaid(changed), ["upstream changed", "from nowhere to RSU 01:01: first: there was no way before"]);
  assert.match(page.eventSaid({ event: "hand-over", to, gap_ms: 17, lost: 2 })[1], /gap 17 ms, 2 frames lost/);
  assert.deepEqual(page.eventSaid({ number: 3, at_unix_ms: 2, event: "new-thing", some_id: 5 }), ["new thing", "some id 5"]);
});

test("spans are said in the unit that fits", () => {
  const said = [0, 999, 1000, 119999, 120000, 7200000, 172800000, null].map(page.span);
  assert.deepEqual(said, ["0 ms", "999 ms", "1 s", "119 s", "2 min", "2 h", "2 days", "–"]);
});

test("what comes again replaces what was there, and a bound holds", () => {
  const state = page.blank();
  page.take(state, { at_unix_ms: 1, changes: [{ number: 3, cost: null }], events: [{ number: 3 }] }, true);
  page.take(state, { at_unix_ms: 2, changes: [{ number: 3, cost: { gap_ms: 9 } }] }, false);
  assert.deepEqual(state.changes, [{ number: 3, cost: { gap_ms: 9 } }]);
  for (let number = 0; number < 2000; number++) page.take(state, { at_unix_ms: 3, events: [{ number }] }, false);
  assert.equal(state.events.length, 512);
  assert.equal(state.events.at(-1).number, 1999);
  // After a reconnect the whole is what counts.
  page.take(state, { at_unix_ms: 4, changes: [], events: [{ number: 7 }] }, true);
  assert.deepEqual([state.changes, state.events], [[], [{ number: 7 }]]);
});

test("a recording can be looked at at any moment, forwards and backwards", () => {
  const looks = Array.from({ length: 200 }, (_, n) => ({
    at_unix_ms: 1000 * n, role: "obu", problems: [], events: n % 50 ? [] : [{ number: n / 50 }], changes: [],
    view: view({}, { relayed: 7 * n }, 1000 * n + 1),
  }));
  for (const at of [0, 199, 120, 3]) {
    const state = page.stateAt(looks, at);
    assert.equal(state.at, 1000 * at);
    assert.equal(state.view, looks[at].view);
    assert.equal(state.events.length, Math.floor(at / 50) + 1);
    const rates = page.moving(state)[0]?.rates ?? [];
    assert.equal(rates.length, at ? Math.min(at + 1, 60) : 0);
    if (at) assert.equal(rates.at(-1), 7);
  }
});

test("counters have their rate, and begin anew with the daemon", () => {
  const state = page.blank();
  const hear = (at, count, uptime) =>
    page.take(state, { at_unix_ms: at, view: view({}, { relayed: count, idle: 5, gap_max_us: count }, uptime) }, false);
  hear(1000, 10, 1000);
  hear(3000, 30, 3000);
  const moving = page.moving(state);
  assert.deepEqual(moving.map((one) => one.name), ["node relayed"]);
  assert.equal(moving[0].rates.at(-1), 10);
  hear(4000, 1, 500);
  assert.deepEqual(page.moving(state), []);
  for (let n = 0; n < 200; n++) hear(5000 + n, n, 5000 + n);
  assert.equal(page.moving(state)[0].rates.length, 60);
});

test("a vehicle stands between the RSUs it knows and those that send through it", () => {
  const state = page.blank();
  const node = {
    routes: [
      route("01", "in-use", [candidate("01", { is_used: true, via: null, hops: 1 }), candidate("02"), candidate("03", { obstacles: ["through-us"], via: ID + "09" })]),
      route("08", "no-upstream", []),
    ],
    neighbours: [{ id: ID + "01" }, { id: ID + "02" }, { id: ID + "03", is_child: true }],
    children: [{ id: ID + "03" }],
  };
  page.take(state, { at_unix_ms: 1, role: "obu", view: view(node, {}, 1) }, true);
  const { rows, edges, left } = page.graph(state);
  assert.deepEqual(rows.map((row) => row.map((one) => one.id.slice(-2))), [["01", "08"], ["02"], ["09"], ["03"]]);
  const way = (from, to) => edges.find((edge) => edge.from === ID + from && edge.to === ID + to)?.kind;
  assert.equal(way("09", "01"), "used");
  assert.equal(way("09", "02"), "usable");
  assert.equal(way("02", "01"), "usable");
  assert.equal(way("03", "09"), "used");
  assert.equal(way("09", "03"), undefined);
  assert.equal(left, 0);
});

test("an RSU is the root of its vehicles, and too many are counted", () => {
  const state = page.blank();
  const obu = (n, way, more) => ({ id: ID + n, standing: "attached", upstream: way?.at(-1) ?? ID + "09", way, clients: 1, ...more });
  const obus = [obu("01", []), obu("02", [ID + "01"]), obu("03", null), obu("04", [], { standing: "gone" })];
  page.take(state, { at_unix_ms: 1, role: "rsu", view: view({ role: "rsu", obus }, {}, 1) }, true);
  const { rows, edges } = page.graph(state);
  assert.deepEqual(rows.map((row) => row.map((one) => one.id.slice(-2))), [["09"], ["01", "03"], ["02"]]);
  assert.deepEqual(edges.map((edge) => [edge.from.slice(-2), edge.to.slice(-2), edge.kind]).sort(),
    [["01", "09", "used"], ["02", "01", "used"], ["03", "09", "refused"]]);
  const crowd = Array.from({ length: 300 }, (_, n) => obu(`0${n}`, []));
  page.take(state, { at_unix_ms: 2, view: view({ role: "rsu", obus: crowd }, {}, 2) }, false);
  assert.equal(page.graph(state).left, 252);
});
