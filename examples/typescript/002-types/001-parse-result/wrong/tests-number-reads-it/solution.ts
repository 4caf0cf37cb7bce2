export type Result = { ok: true; value: number } | { ok: false; reason: string };

/** A port number, or why the text is none. */
export function parsePort(text: string): Result {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 65535) {
    return { ok: false, reason: `not a port: ${text}` };
  }
  return { ok: true, value };
}
