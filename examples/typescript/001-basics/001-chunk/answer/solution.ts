/** A list in lists of at most `size` items. */
export function chunk<T>(items: readonly T[], size: number): T[][] {
  if (!Number.isInteger(size) || size < 1) {
    throw new RangeError(`a chunk holds at least one item, not ${size}`);
  }
  const found: T[][] = [];
  for (let start = 0; start < items.length; start += size) {
    found.push(items.slice(start, start + size));
  }
  return found;
}
