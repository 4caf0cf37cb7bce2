// Reads pasted texts: one per line, or a table with a header that has a column `text`.
"use strict";

const FIELDS = ["title", "text", "url", "date", "source", "cluster", "truth"];
const RESPONSES = ["response_a", "response_b"];

/** Returns the rows of delimited text (RFC 4180), each a list of cells; empty rows are left out. */
function tableRows(text, mark) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  for (let place = 0; place < text.length; place++) {
    const sign = text[place];
    if (quoted) {
      if (sign !== '"') cell += sign;
      else if (text[place + 1] === '"') { cell += '"'; place++; }
      else quoted = false;
    } else if (sign === '"' && !cell.trim()) { quoted = true; cell = ""; }
    else if (sign === mark) { row.push(cell.trim()); cell = ""; }
    else if (sign === "\n") { rows.push([...row, cell.trim()]); row = []; cell = ""; }
    else if (sign !== "\r") cell += sign;
  }
  rows.push([...row, cell.trim()]);
  return { rows: rows.filter((cells) => cells.some(Boolean)), open: quoted };
}

/** Returns {items, columns, pairs, error}: each item is an object; columns are those of unknown meaning. */
function readTexts(text) {
  const header = text.trimStart().split("\n", 1)[0];
  const mark = [",", "\t", ";"].find((sign) => header.split(sign).some((name) => /^"?text"?$/i.test(name.trim())));
  if (!mark) {
    const items = text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => ({ text: line }));
    return { items, columns: [], pairs: false, error: "" };
  }
  const { rows, open } = tableRows(text.trimStart(), mark);
  const names = rows.shift().map((name) => ([...FIELDS, ...RESPONSES].includes(name.toLowerCase()) ? name.toLowerCase() : name));
  const found = { items: [], columns: names.filter((name) => name && ![...FIELDS, ...RESPONSES].includes(name)), pairs: RESPONSES.every((name) => names.includes(name)), error: "" };
  const twice = names.find((name, place) => name && names.indexOf(name) !== place);
  if (twice) found.error = `The header names ${twice} twice.`;
  if (open) found.error = "A quotation mark is not closed.";
  rows.forEach((cells, number) => {
    if (cells.length > names.length) found.error ||= `Row ${number + 2} has ${cells.length} cells under a header of ${names.length}.`;
    const item = Object.fromEntries(names.map((name, place) => [name, cells[place] || ""]).filter(([name, value]) => name && value));
    if (!item.text) found.error ||= `Row ${number + 2} has no text.`;
    found.items.push(item);
  });
  return found;
}

/** Returns whether a column looks like labels: few values, each short, and most of them repeated. */
function looksLikeLabels(items, column) {
  const values = items.map((item) => item[column]).filter(Boolean);
  const kinds = new Set(values);
  return values.length > 0 && kinds.size <= 26 && [...kinds].every((value) => value.length <= 40) && (kinds.size < values.length || items.length < 8);
}
