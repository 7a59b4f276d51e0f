// Times as text. All of them are in the viewer's time zone.

/** The viewer's time zone, such as Europe/Berlin. */
export const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Return a time like `2026-06-01 12:00`, without the time of day at midnight. */
export function formatTime(time) {
  const [day, clock] = toLocalText(new Date(time)).split("T");
  if (clock.startsWith("00:00:00")) return day;
  return `${day} ${clock.endsWith(":00") ? clock.slice(0, 5) : clock}`;
}

/** Return the day of a time like `2026-06-01`. */
export const formatDay = (time) => toLocalText(new Date(time)).slice(0, 10);

/** Return a time as a `datetime-local` input reads it, in seconds. */
export function toLocalText(time) {
  const twoDigits = (number) => String(number).padStart(2, "0");
  const day = [String(time.getFullYear()).padStart(4, "0"), twoDigits(time.getMonth() + 1), twoDigits(time.getDate())].join("-");
  return `${day}T${[time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits).join(":")}`;
}

/** Return an interval, without its end, as text; null ends are open or unknown. */
export function formatInterval(start, end) {
  if (start === null && end === null) return "undated";
  if (start === end) return "at no time";
  if (end === null) return `from ${formatTime(start)} on`;
  return start === null ? `until ${formatTime(end)}` : `${formatTime(start)} to ${formatTime(end)}`;
}

/** Return a time rounded up to milliseconds, the precision of JavaScript. */
export const ceilToMillisecond = (time) => new Date(new Date(time).getTime() + (/\.\d{3}0*(Z|[+-])/.test(time) || !/\./.test(time) ? 0 : 1));

/** Return the time that a `datetime-local` input holds, or null. */
export function readLocalText(text) {
  const time = new Date(text);
  return text && !Number.isNaN(time.getTime()) ? time : null;
}
