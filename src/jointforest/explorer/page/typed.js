/** Conditions as people read and type them in a card. Pure functions. */

/**
 * A condition in a few words: "40 to 60", "not Male".
 * @param {import("./state.js").Condition|null} condition
 * @param {import("./state.js").Column} column
 * @param {(x: number) => string} write
 */
export function describe(condition, column, write) {
  if (!condition) return "";
  if (condition.missing) return "missing";
  if (condition.levels) return describeLevels(condition.levels, column);
  if (condition.text !== undefined) return condition.text;
  const { low, high } = condition;
  if (low !== null && low === high) return `= ${write(low)}`;
  if (high === null) return `${condition.low_in ? "≥" : ">"} ${write(low)}`;
  if (low === null) return `${condition.high_in ? "≤" : "<"} ${write(high)}`;
  return `${condition.low_in ? "" : "> "}${write(low)} to ${condition.high_in ? "" : "< "}${write(high)}`;
}

function describeLevels(levels, column) {
  const size = column.levels.length;
  const few = levels.length <= size - levels.length || levels.length === 1;
  const chosen = new Set(levels);
  const named = few ? levels : [...Array(size).keys()].filter((k) => !chosen.has(k));
  const names = named.slice(0, 4).map((k) => labelOf(column, k));
  const rest = named.length - names.length;
  return `${few ? "" : "not "}${names.join(" or ")}${rest ? ` or ${rest} more` : ""}`;
}

/** The text of a level. */
export function labelOf(column, k) {
  return column.labels?.[k] ?? String(column.levels[k]);
}

/** What someone typed as a condition; null for none. Python reads it, or in a report `read_typed.js`. */
export function parse(typed) {
  const text = typed.trim();
  return text && text.toLowerCase() !== "any" ? { typed: text } : null;
}
