import assert from "node:assert/strict";
import test from "node:test";
import { ask } from "../candidate.mjs";

const found = ask(`(async () => {
  const scene = (play) => {
    const log = [];
    const events = new s.Events();
    return [play(events, (name) => (value) => log.push(name + value), log), log];
  };
  const attempt = (run) => {
    try { return run(); } catch (error) {
      return error instanceof AggregateError ? error.errors.map(String) : String(error);
    }
  };
  const fail = (text) => () => { throw new Error(text); };
  const events = new s.Events();
  const both = [events.next("a"), events.next("a")];
  const counted = [events.emit("a", 1), events.emit("a", 2)];
  return {
    order: scene((e, log) => { e.on("x", log("a")); e.on("y", log("b")); e.on("x", log("c")); return [e.emit("x", 1), e.emit("z", 2)]; }),
    twice: scene((e, log) => { const f = log("a"); e.on("x", f); const off = e.on("x", f); off(); off(); return e.emit("x", 1); }),
    first: scene((e, log) => { const f = log("a"); const off = e.on("x", f); e.on("x", log("b")); e.on("x", f); off(); e.emit("x", 1); }),
    added: scene((e, log) => { e.on("x", () => e.on("x", log("late"))); return [e.emit("x", 1), e.emit("x", 2)]; }),
    removed: scene((e, log) => { let off = () => {}; e.on("x", () => off()); off = e.on("x", log("b")); return e.emit("x", 1); }),
    once: scene((e, log, out) => { e.once("x", (value) => { out.push(value); if (value < 5) e.emit("x", value + 1); }); return [e.emit("x", 1), e.emit("x", 9)]; }),
    unused: scene((e, log) => { const off = e.once("x", log("a")); off(); return e.emit("x", 1); }),
    one: scene((e, log) => { e.on("x", fail("one")); e.on("x", log("b")); return attempt(() => e.emit("x", 1)); }),
    many: scene((e, log) => { e.on("x", fail("one")); e.on("x", log("b")); e.once("x", fail("two")); return [attempt(() => e.emit("x", 1)), attempt(() => e.emit("x", 2))]; }),
    names: ["__proto__", "constructor", "toString"].map((name) => scene((e, log) => { e.on(name, log("a")); return [e.emit(name, 1), e.emit("hasOwnProperty", 1)]; })),
    next: [counted, await Promise.all(both)],
  };
})()`);

test("listeners are called in order and counted", () => assert.deepEqual(found.order, [[2, 0], ["a1", "c1"]]));
test("a function can be added twice, and one addition removed", () => {
  assert.deepEqual(found.twice, [1, ["a1"]]);
  assert.deepEqual(found.first[1], ["b1", "a1"]);
});
test("a listener that is added meanwhile waits", () => assert.deepEqual(found.added, [[1, 2], ["late2"]]));
test("a listener that is removed meanwhile is not called", () => assert.deepEqual(found.removed, [1, []]));
test("a listener of once is called once", () => {
  assert.deepEqual(found.once, [[1, 0], [1]]);
  assert.deepEqual(found.unused, [0, []]);
});
test("one error is thrown after all listeners", () => assert.deepEqual(found.one, ["Error: one", ["b1"]]));
test("several errors are thrown together", () => {
  assert.deepEqual(found.many, [[["Error: one", "Error: two"], "Error: one"], ["b1", "b2"]]);
});
test("any name will do", () => {
  assert.deepEqual(found.names, Array(3).fill([[1, 0], ["a1"]]));
});
test("next waits for one value and does not count", () => {
  assert.deepEqual(found.next, [[0, 0], [1, 1]]);
});
