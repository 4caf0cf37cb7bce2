export type Result = { ok: true; value: number } | { ok: false; reason: string };

/** A port number, or that the text is none. */
export function parsePort(text: string): Result {
  const value = /^[1-9][0-9]*$/.test(text) ? Number(text) : NaN;
  return value <= 65535 ? { ok: true, value } : { ok: false };
}
