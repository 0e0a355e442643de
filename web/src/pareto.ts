// Which points no other beats in everything: no worse in any objective, and better in one.

/** Places among the rows; the less of every number the better, rows without one of them are on no front. */
export function front(rows: (number | null)[][]): number[] {
  const known = rows.map((row, place) => ({ row: row as number[], place })).filter(({ row }) => row.every((value) => value !== null));
  // Nobody is beaten by who comes later in this order.
  known.sort((a, b) => {
    const i = a.row.findIndex((value, j) => value !== b.row[j]);
    return i < 0 ? a.place - b.place : a.row[i]! - b.row[i]!;
  });
  const found: typeof known = [];
  for (const one of known)
    if (!found.some((other) => other.row.every((value, i) => value <= one.row[i]!) && other.row.some((value, i) => value !== one.row[i]))) found.push(one);
  return found.map(({ place }) => place);
}
