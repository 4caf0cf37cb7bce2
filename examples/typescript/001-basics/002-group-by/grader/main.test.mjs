import assert from "node:assert/strict";
import test from "node:test";
import { ask } from "../candidate.mjs";

const found = ask(`[
  [...s.groupBy(["pear", "fig", "plum", "apple"], (word) => word[0])],
  [...s.groupBy([], () => "x")],
  [...s.groupBy(["__proto__", "constructor"], (word) => word)],
]`);

test("groups and items are in order", () => {
  assert.deepEqual(found[0], [["p", ["pear", "plum"]], ["f", ["fig"]], ["a", ["apple"]]]);
});
test("nothing gives no group", () => assert.deepEqual(found[1], []));
test("any key will do", () => {
  assert.deepEqual(found[2], [["__proto__", ["__proto__"]], ["constructor", ["constructor"]]]);
});
