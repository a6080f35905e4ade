/** Moments as calendars and clocks of a zone show them. Pure functions. */

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
