import assert from "node:assert/strict";
import test from "node:test";
import { ask } from "../candidate.mjs";

const bad = ["", "0", "080", "65536", "-1", "1.5", "1e3", " 80", "80\n", "x", "9".repeat(400)];
const found = ask(`{
  good: ["1", "80", "65535"].map(s.parsePort),
  bad: ${JSON.stringify(bad)}.map(s.parsePort),
}`);

test("ports are read", () => {
  assert.deepEqual(found.good, [1, 80, 65535].map((value) => ({ ok: true, value })));
});
test("other texts are no ports", () => assert.ok(found.bad.every((one) => one.ok === false)));
test("and there is a reason", () => assert.ok(found.bad.every((one) => one.reason.length > 0)));
