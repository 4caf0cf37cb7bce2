// A grader's way to the candidate: it runs in a sandbox of its own, and sends plain data back.
import { readSync, writeSync } from "node:fs";

const ASK = 4;
const ANSWER = 5;

function line(descriptor) {
  const parts = [];
  const buffer = Buffer.alloc(1 << 16);
  while (true) {
    const count = readSync(descriptor, buffer, 0, buffer.length, null);
    if (count === 0) throw new Error("the host is gone");
    parts.push(Buffer.from(buffer.subarray(0, count)));
    if (buffer[count - 1] === 10) return Buffer.concat(parts).toString();
  }
}

/** Run a command in a fresh sandbox that holds the candidate's files. */
export function command(words, stdin = "") {
  let asked = Buffer.from(JSON.stringify({ command: words, stdin }) + "\n");
  while (asked.length > 0) asked = asked.subarray(writeSync(ASK, asked));
  return JSON.parse(line(ANSWER));
}

const COMPILE_AND_RUN = `
  node="$1/.bin/node" out="$TMPDIR/out" && mkdir "$out" &&
  echo '{"type": "module"}' > "$out/package.json" && cat > "$out/ask.js" &&
  "$node" "$1/typescript/bin/tsc" --target es2022 --lib es2022 --module es2022 \
    --moduleResolution bundler --outDir "$out" solution.ts >&2 &&
  exec "$node" "$out/ask.js"
`;

/** The value of an expression, in which `s` is the candidate's module; it may be a promise. */
export function ask(expression) {
  const script = `import * as s from "./solution.js"; console.log(JSON.stringify(await (${expression})));`;
  const ran = command(["sh", "-c", COMPILE_AND_RUN, "sh", "{deps}/node_modules"], script);
  if (ran.code !== 0) throw new Error(`ended by ${ran.ended}, code ${ran.code}: ${ran.stderr}`);
  return JSON.parse(ran.stdout);
}
