export function chunk(items, size) {
  if (!Number.isInteger(size) || size < 1) {
    throw new RangeError(`a chunk holds at least one item, not ${size}`);
  }
  const chunks = [];
  for (let start = 0; start < items.length; start += size) {
    chunks.push(items.slice(start, start + size));
  }
  return chunks;
}
