/** Conditions as people read and type them in a card. Pure functions. */
import { momentOf } from "./dates.js";

const NUMBER = "[-−+]?(?:\\d[\\d,]*\\.?\\d*|\\.\\d+)(?:e[-+]?\\d+)?";
const SIDE = new RegExp(`^(<=|>=|≤|≥|<|>|=|==)?\\s*(${NUMBER})$`, "i");
const BOTH = new RegExp(`^(${NUMBER})\\s*(?:to|\\.\\.+|…|–|and)\\s*(${NUMBER})$`, "i");

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

/**
 * The condition that someone typed for a column; null for none. What is not understood here goes on as text of the
 * query language.
 */
export function parse(typed, column) {
  const text = typed.trim();
  if (!text || text.toLowerCase() === "any") return null;
  if (/^(is )?missing$/i.test(text)) return { missing: true };
  const read = column.levels ? parseLevels : column.kind === "datetime" ? parseDate : parseNumber;
  const found = read(text, column);
  return found ?? { text: inWords(text, column) };
}

function parseNumber(text) {
  const number = (word) => Number(word.replace(/,/g, "").replace("−", "-"));
  const both = BOTH.exec(text);
  if (both) return { low: number(both[1]), high: number(both[2]), low_in: true, high_in: true };
  const side = SIDE.exec(text);
  return side ? onOneSide(side[1] ?? "=", number(side[2])) : null;
}

/** Dates as 2024-03-01 or 2024-03-01 12:30, by the clocks of the column's zone. */
function parseDate(text, column) {
  const date = (word) => momentOf(word.trim().replace(/^'(.*)'$/, "$1"), column.zone);
  const both = /^([^<>=≤≥]+?)\s+(?:to|and|–)\s+([^<>=≤≥]+)$/i.exec(text);
  if (both) {
    const [low, high] = [date(both[1]), date(both[2])];
    return low === null || high === null ? null : { low, high, low_in: true, high_in: true };
  }
  const [, sign, word] = /^(<=|>=|≤|≥|<|>|==?)?(.*)$/s.exec(text);
  const x = date(word);
  return x === null ? null : onOneSide(sign ?? "=", x);
}

function onOneSide(sign, x) {
  if (sign.startsWith("=")) return { low: x, high: x, low_in: true, high_in: true };
  const closed = sign !== "<" && sign !== ">";
  return sign === "<" || sign === "<=" || sign === "≤"
    ? { low: null, high: x, low_in: true, high_in: closed }
    : { low: x, high: null, low_in: closed, high_in: true };
}

function parseLevels(text, column) {
  const size = column.levels.length;
  const labels = Array.from({ length: size }, (_, k) => labelOf(column, k));
  const whole = findLevel(text, labels);
  if (whole !== null) return { levels: [whole] };
  const not = /^not\s+(.*)$/is.exec(text);
  const places = (not ? not[1] : text).split(/\s+or\s+/i).map((word) => findLevel(word.trim(), labels));
  if (places.some((place) => place === null)) return null;
  const named = new Set(places);
  const levels = [...Array(size).keys()].filter((k) => named.has(k) !== Boolean(not));
  return levels.length ? { levels } : null;
}

/** The level that is written so; else the only one that begins so, in any case. */
function findLevel(word, labels) {
  const exact = labels.indexOf(word);
  if (exact >= 0) return exact;
  const low = word.toLowerCase();
  const begin = labels.flatMap((label, k) => (label.toLowerCase().startsWith(low) ? [k] : []));
  const same = begin.filter((k) => labels[k].toLowerCase() === low);
  return same.length === 1 ? same[0] : begin.length === 1 ? begin[0] : null;
}

/** What was typed as a condition of the query language. */
function inWords(text, column) {
  const name = quoteName(column.name);
  const value = column.kind === "datetime" ? (word) => `'${word.trim().replace(/^'|'$/g, "")}'` : (word) => word.trim();
  const both = /^([^<>=]+?)\s+to\s+([^<>=]+)$/i.exec(text);
  if (both && column.kind === "datetime") return `${name} between ${value(both[1])} and ${value(both[2])}`;
  const side = /^(<=|>=|≤|≥|!=|<|>|==?)\s*(.+)$/s.exec(text);
  if (side) return `${name} ${side[1].replace("≤", "<=").replace("≥", ">=")} ${value(side[2])}`;
  if (/^(in|not in|between|not between|about|likely|is)\b/i.test(text)) return `${name} ${text}`;
  if (column.kind === "datetime" && /^\d/.test(text)) return `${name} = ${value(text)}`;
  if (column.levels && !/[=<>(){}]/.test(text)) return `${name} = '${text.replace(/'/g, "''")}'`;
  return text;
}

/** The name of a column in the query language. */
export function quoteName(name) {
  return /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name : `\`${name.replace(/`/g, "``")}\``;
}
