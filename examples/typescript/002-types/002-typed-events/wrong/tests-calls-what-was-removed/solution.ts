type Entry = { call: (value: never) => void; removed: boolean; counts: boolean };

/** Calls listeners by the names of events. */
export class Events<M extends Record<string, unknown>> {
  private readonly entries = new Map<keyof M, Entry[]>();

  on<K extends keyof M>(name: K, listener: (value: M[K]) => void): () => void {
    return this.add(name, listener, true);
  }

  once<K extends keyof M>(name: K, listener: (value: M[K]) => void): () => void {
    return this.addOnce(name, listener, true);
  }

  emit<K extends keyof M>(name: K, value: M[K]): number {
    const errors: unknown[] = [];
    let count = 0;
    for (const entry of [...(this.entries.get(name) ?? [])]) {

      if (entry.counts) count += 1;
      try {
        (entry.call as (value: M[K]) => void)(value);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length === 1) throw errors[0];
    if (errors.length > 1) throw new AggregateError(errors, "several listeners failed");
    return count;
  }

  next<K extends keyof M>(name: K): Promise<M[K]> {
    return new Promise((resolve) => this.addOnce(name, (value: M[K]) => resolve(value), false));
  }

  private addOnce<K extends keyof M>(
    name: K,
    listener: (value: M[K]) => void,
    counts: boolean,
  ): () => void {
    const once = (value: M[K]): void => {
      remove();
      listener(value);
    };
    const remove = this.add(name, once, counts);
    return remove;
  }

  private add<K extends keyof M>(
    name: K,
    call: (value: M[K]) => void,
    counts: boolean,
  ): () => void {
    const entry: Entry = { call, removed: false, counts };
    this.entries.set(name, [...(this.entries.get(name) ?? []), entry]);
    return () => {
      entry.removed = true;
      const left = (this.entries.get(name) ?? []).filter((each) => each !== entry);
      this.entries.set(name, left);
    };
  }
}
