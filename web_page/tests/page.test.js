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

const spot = (map, n) => map.spots.find((one) => one.id === ID + n);
const at = (latitude_deg, longitude_deg, age_ms = null) => ({ latitude_deg, longitude_deg, accuracy_m: null, age_ms });

test("who says where it is stands on the map, metres from each other, and nobody else", () => {
  const state = page.blank();
  const node = {
    position: at(48.0, 11.0, 250),
    routes: [{ ...route("01", "in-use", [candidate("01", { is_used: true, via: null, hops: 1 }), candidate("02"), candidate("03")]), position: at(48.01, 11.0) }],
    neighbours: [{ id: ID + "01", position: at(48.01, 11.0) }, { id: ID + "02", position: at(48.0, 11.01, 1800) }, { id: ID + "03", position: null }],
  };
  page.take(state, { at_unix_ms: 1, role: "obu", view: view(node, {}, 1) }, true);
  const map = page.mapOf(state, page.originOf(state));
  assert.deepEqual(map.spots.map((one) => one.id.slice(-2)), ["09", "01", "02"]);
  assert.deepEqual([spot(map, "09").x, spot(map, "09").y, spot(map, "09").age], [0, 0, 250]);
  assert.ok(Math.abs(spot(map, "01").y - 1112) < 1 && Math.abs(spot(map, "01").x) < 1e-6);
  // A degree of longitude is shorter by the cosine of the latitude.
  assert.ok(Math.abs(spot(map, "02").x - 744) < 1);
  assert.equal(spot(map, "01").kind, "rsu");
  assert.equal(spot(map, "02").age, 1800);
  assert.deepEqual(map.ways.map((way) => [way.from.slice(-2), way.to.slice(-2), way.kind]).sort(),
    [["02", "01", "usable"], ["09", "01", "used"], ["09", "02", "usable"]]);
});

test("what the receiver says counts where there is one, and nothing is on the map where nobody says", () => {
  const state = page.blank();
  page.take(state, { at_unix_ms: 1, view: view({}, {}, 1), position: { fix: null, age_ms: 7000 } }, true);
  assert.equal(page.originOf(state), null);
  assert.deepEqual(page.mapOf(state, null).spots, []);
  const fix = { latitude_deg: -33.9, longitude_deg: 179.9999, accuracy_m: 3 };
  page.take(state, { at_unix_ms: 2, view: view({}, {}, 2), position: { fix, age_ms: 40 } }, false);
  const [self] = page.mapOf(state, { lat: -33.9, lon: -179.9999 }).spots;
  assert.deepEqual([self.isSelf, self.age, self.accuracy], [true, 40, 3]);
  assert.ok(self.x < 0 && self.x > -30, "over the edge of the world it is not far");
});

test("the way a node took grows with it, and not without bound", () => {
  let trail = page.grown([], { lat: 0, lon: 1 });
  assert.equal(page.grown(trail, { lat: 0, lon: 1 }), trail, "while it stands it does not grow");
  for (let n = 0; n < 5000; n++) trail = page.grown(page.grown(trail, { lat: n, lon: 1 }), { lat: n, lon: 1 });
  assert.ok(trail.length > 900 && trail.length <= 2000, `${trail.length}`);
  assert.deepEqual([trail[0].lat, trail.at(-1).lat], [0, 4999]);
});

test("the map shows all of it, north up, and a part of it larger", () => {
  const box = page.boxed(page.boxed(null, [[0, 0], [300, 100]]), [[-100, 50]]);
  assert.deepEqual(box, [-100, 0, 300, 100]);
  const whole = page.project(box, { zoom: 1, centre: null }, [456, 456]);
  assert.equal(whole.scale, 1);
  assert.deepEqual(whole.to([100, 50]), [228, 228]);
  assert.ok(whole.to([0, 100])[1] < whole.to([0, 0])[1], "north is up");
  const part = page.project(box, { zoom: 4, centre: [300, 100] }, [456, 456]);
  assert.deepEqual([part.scale, part.to([300, 100])], [4, [228, 228]]);
  // One place alone has some room around it.
  assert.ok(Number.isFinite(page.project([5, 5, 5, 5], { zoom: 1, centre: null }, [456, 456]).scale));
  assert.deepEqual([7, 23, 45, 60, 1500].map(page.roundLength), [5, 20, 20, 50, 1000]);
});

// Two RSUs, a vehicle through another, and one that has lost its way.
const town = () => {
  const way = (node, used, more = []) => [node, used, more, 1, [1, 0, 1, 0], [null, null, null], [80, 1, null, null, 20, 0], null];
  const look = (t, x) => ({
    at: t,
    nodes: [
      [0, 0, 0, null, null, null, []], [1, 500, 0, null, null, null, []],
      [2, x, 10, 0, 0, 1, [[0, "in-use", 80, 2, [way(0, 1)]]]],
      [3, x + 200, 10, 2, 0, 2, [[0, "in-use", 80, 2, [way(2, 1), way(0, 0, ["one-way"])]], [1, "not-better", 80, 0, [way(1, 0)]]]],
      ...(t < 2000 ? [] : [[4, 900, 0, null, null, null, []], [5, 600, 10, 3, 0, 3, []]]),
    ],
  });
  const change = (number, t) => ({ number, at_unix_ms: t, from: null, to: { rsu: ID + "00", upstream: ID + "02", hops: 2 }, cause: "first", silence_ms: 0, cost: null, routes: [] });
  return {
    name: "t", seed: 1, broken: null, looks: [look(0, 50), look(1000, 60), look(2000, 70)], changes: { 3: [change(1, 500), change(2, 1500)] }, events: {},
    nodes: ["west", "east", "a", "b", "c", "d"].map((name, n) => [`${ID}0${n}`, name, n < 2 ? "rsu" : "obu"]),
  };
};

test("a town shows everybody at any moment, and each as it would show itself", () => {
  const all = page.townAt(town(), 2, null);
  assert.deepEqual(all.routed, [3, 4]);
  assert.equal(all.view, null);
  assert.deepEqual(all.map.spots.map((one) => one.name), ["west", "east", "a", "b", "c", "d"]);
  assert.deepEqual(all.map.spots.filter((one) => one.mark).map((one) => one.name), ["c"]);
  assert.deepEqual(all.map.ways.map((way) => [way.from.slice(-1), way.to.slice(-1)]), [["2", "0"], ["3", "2"], ["5", "3"]]);
  const seen = page.townAt(town(), 1, ID + "03");
  assert.deepEqual(seen.view.node.attached, { rsu: ID + "00", upstream: ID + "02", hops: 2, since_ms: 500 });
  assert.deepEqual(seen.changes.map((one) => one.number), [1], "what comes later has not happened yet");
  assert.deepEqual(seen.map.trail, [[250, 10], [260, 10]]);
  const [west, east] = seen.view.node.routes;
  assert.deepEqual(page.standing(west, west.candidates[0]), ["in use", "good"]);
  assert.deepEqual(page.standing(west, west.candidates[1]), ["one way", "bad"]);
  assert.deepEqual(page.standing(east, east.candidates[0]), ["usable", ""]);
  assert.ok(seen.map.ways.some((way) => way.from === ID + "03" && way.to === ID + "01" && way.kind === "usable"), "what it could choose is drawn");
  // Not there yet.
  assert.equal(page.townAt(town(), 1, ID + "04").view, null);
});

test("an RSU of a town has the vehicles behind it, in their tree", () => {
  const state = page.townAt(town(), 2, ID + "00");
  assert.deepEqual(state.view.node.obus.map((obu) => [obu.id.slice(-1), obu.way.map((id) => id.slice(-1))]), [["2", []], ["3", ["2"]], ["5", ["2", "3"]]]);
  assert.deepEqual(page.graph(state).rows.map((row) => row.map((one) => one.id.slice(-1))), [["0"], ["2"], ["3"], ["5"]]);
  assert.deepEqual(page.townAt(town(), 2, ID + "01").view.node.obus, [], "nobody is behind the other");
  // Upstreams that lead to nobody, or in a circle, are no way.
  const broken = town();
  broken.looks[2].nodes[2][3] = 3;
  assert.deepEqual(page.townAt(broken, 2, ID + "00").view.node.obus.map((obu) => obu.way), [null, null, null]);
});
