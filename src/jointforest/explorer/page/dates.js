/** Moments as calendars and clocks of a zone show them, and back. Pure functions. */

/** @returns {{day: string, clock: string, offset: string}} as 2024-03-01, 12:30:00, +01:00 */
export function local(x, timeZone) {
  const options = { timeZone, hourCycle: "h23", year: "numeric", timeZoneName: "longOffset" };
  for (const part of ["month", "day", "hour", "minute", "second"]) options[part] = "2-digit";
  const parts = Object.fromEntries(
    new Intl.DateTimeFormat("en-GB", options).formatToParts(x).map((part) => [part.type, part.value]),
  );
  return {
    day: `${parts.year.padStart(4, "0")}-${parts.month}-${parts.day}`,
    clock: `${parts.hour}:${parts.minute}:${parts.second}`,
    offset: parts.timeZoneName.replace("GMT", "") || "+00:00",
  };
}

/**
 * The moment, in milliseconds since 1970, that is written "2024-03-01" or "2024-03-01 12:30"; null if it is none, or if the
 * clocks of the zone show it twice.
 */
export function momentOf(text, zone) {
  const found = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?)?$/.exec(text);
  if (!found) return null;
  const [day, clock] = [found[1], `${found[2] ?? "00:00"}${found[3] ?? ":00"}`];
  const there = Date.parse(`${day}T${clock}Z`);
  if (Number.isNaN(there)) return null;
  const shown = (x) => local(x, zone ?? "UTC");
  const places = [-864e5, 0, 864e5].map((by) => {
    const { day: d, clock: c } = shown(there + by);
    return there - (Date.parse(`${d}T${c}Z`) - (there + by));
  });
  const moments = [...new Set(places)].filter((x) => shown(x).day === day && shown(x).clock === clock);
  return moments.length === 1 ? moments[0] : null;
}
