/** Evidence in the query language, and as a call in Python. Pure functions. */
import { local } from "./dates.js";
import { monthText } from "./format.js";

/**
 * @param {object[]} evidence - tidied
 * @param {object[]} columns - of the table
 * @param {object[]} cuts - `_column` of embed.py
 */
export function sentence(evidence, columns, cuts) {
  return evidence.map((one) => say(one, columns[one.column], cuts[one.column].quoted)).join(" and ");
}

/** One condition without the name of its column, as the text field beside the name shows it. */
export function wordsBeside(condition, column) {
  return say(condition, column, "").trim();
}

/** How to ask in Python. */
export function pythonCall(words) {
  if (!words) return "joint.given()";
  const quote = words.includes("'") && !words.includes('"') ? '"' : "'";
  const escaped = words.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/\r/g, "\\r").replaceAll(quote, `\\${quote}`);
  return `joint.given(${quote}${escaped}${quote})`;
}

function say(condition, column, name) {
  if (condition.missing !== undefined) return `${name} is ${condition.missing ? "" : "not "}missing`;
  if (condition.levels) return sayLevels(condition.levels, column.levels, name);
  const { low, high, low_in: lowIn, high_in: highIn } = condition;
  const text = (x) => (column.month ? monthText(x, column.month) : moment(x, column.zone));
  const number = (x) => (column.month || column.kind === "datetime" ? `'${text(x)}'` : String(x));
  if (low !== null && low === high) return `${name} = ${number(low)}`;
  if (high === null) return `${name} ${lowIn ? ">=" : ">"} ${number(low)}`;
  if (low === null) return `${name} ${highIn ? "<=" : "<"} ${number(high)}`;
  if (!name && lowIn && highIn) return `between ${number(low)} and ${number(high)}`;
  if (!name) return `${lowIn ? ">=" : ">"} ${number(low)} and ${highIn ? "<=" : "<"} ${number(high)}`;
  return `${number(low)} ${lowIn ? "<=" : "<"} ${name} ${highIn ? "<=" : "<"} ${number(high)}`;
}

function sayLevels(places, levels, name) {
  const n = levels.length;
  const list = (some) => `{${some.map((k) => value(levels[k])).join(", ")}}`;
  if (places.length === 1) return `${name} = ${value(levels[places[0]])}`;
  if (2 * places.length <= n || n <= 2) return `${name} in ${list(places)}`;
  const others = [...levels.keys()].filter((k) => !places.includes(k));
  return others.length === 1 ? `${name} != ${value(levels[others[0]])}` : `${name} not in ${list(others)}`;
}

const value = (level) => (typeof level === "string" ? `'${level.replaceAll("'", "''")}'` : String(level));

/** A date as 2024-03-01, with the time of day where it has one, and its offset where a clock shows that time twice. */
function moment(x, zone) {
  const { day, clock, offset } = local(x, zone ?? "UTC");
  const isTwice = [-3.6e6, -1.8e6, 1.8e6, 3.6e6].some((step) => {
    const other = local(x + step, zone ?? "UTC");
    return other.day === day && other.clock === clock;
  });
  if (isTwice) return `${day} ${clock}${offset}`;
  if (clock === "00:00:00") return day;
  return `${day} ${clock.replace(/:00$/, "")}`;
}
