/** Items by key, collected in an object. */
export function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups: Record<string, T[]> = {};
  for (const item of items) {
    const name = key(item);
    groups[name] = [...(groups[name] instanceof Array ? groups[name] : []), item];
  }
  return new Map(Object.entries(groups));
}
