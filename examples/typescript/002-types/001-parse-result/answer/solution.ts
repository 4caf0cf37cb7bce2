export type Result = { ok: true; value: number } | { ok: false; reason: string };

/** A port number, or why the text is none. */
export function parsePort(text: string): Result {
  if (!/^[1-9][0-9]*$/.test(text)) {
    return { ok: false, reason: `not a number: ${JSON.stringify(text)}` };
  }
  const value = Number(text);
  if (value > 65535) {
    return { ok: false, reason: `out of range: ${text}` };
  }
  return { ok: true, value };
}
