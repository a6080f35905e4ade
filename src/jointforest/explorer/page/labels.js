/** The text of a level. */
export function labelOf(column, k) {
  return column.labels?.[k] ?? String(column.levels[k]);
}
