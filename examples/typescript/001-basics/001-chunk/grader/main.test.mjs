import assert from "node:assert/strict";
import test from "node:test";
import { ask } from "../candidate.mjs";

const kind = (size) =>
  `(() => { try { s.chunk([1], ${size}); return "none"; } catch (e) { return e.name; } })()`;
const found = ask(`[s.chunk([1, 2, 3, 4, 5], 2), s.chunk([], 3), s.chunk(["a"], 9),
  ${kind(0)}, ${kind(-1)}, ${kind(1.5)}]`);

test("the last chunk may be shorter", () => assert.deepEqual(found[0], [[1, 2], [3, 4], [5]]));
test("nothing gives nothing", () => assert.deepEqual(found[1], []));
test("a chunk may be larger than the list", () => assert.deepEqual(found[2], [["a"]]));
test("other sizes are refused", () => {
  assert.deepEqual(found.slice(3), ["RangeError", "RangeError", "RangeError"]);
});
