// What the charts of the live view show: a bucket for each second of the last minute.

export const SECONDS = 60;
/** @typedef {{at: number, ok: number, refused: number, failed: number, p50: number | null, p99: number | null, seen: number, shown: number}} Bucket */

/** Add a report to the buckets. @param {Bucket[]} buckets @param {any} report @param {number} now  in milliseconds */
export function addReport(buckets, report, now) {
  const at = Math.floor(now / 1000);
  const last = buckets.at(-1);
  const bucket = last?.at === at ? { ...last } : { at, ok: 0, refused: 0, failed: 0, p50: null, p99: null, seen: 0, shown: 0 };
  for (const name of /** @type {const} */ (["ok", "refused", "failed"])) bucket[name] += report.counts[name] ?? 0;
  bucket.seen += report.seen;
  bucket.shown += report.shown.length;
  bucket.p50 = middle(bucket.p50, report.ms.p50);
  bucket.p99 = Math.max(bucket.p99 ?? 0, report.ms.p99 ?? 0) || null;
  return [...(last?.at === at ? buckets.slice(0, -1) : buckets), bucket].filter((one) => one.at > at - SECONDS);
}

/** @param {number | null} kept @param {number | null} told */
const middle = (kept, told) => (told === null ? kept : kept === null ? told : (kept + told) / 2);

/** Return one bucket for each second until now, empty where nothing happened. @param {Bucket[]} buckets @param {number} now */
export function fillSeconds(buckets, now) {
  const by = new Map(buckets.map((one) => [one.at, one])), end = Math.floor(now / 1000);
  return Array.from({ length: SECONDS }, (_, step) => by.get(end - SECONDS + 1 + step) ?? null);
}

/** Return the rate over the last seconds. @param {Bucket[]} buckets @param {number} now */
export function rateOf(buckets, now, seconds = 5) {
  const from = Math.floor(now / 1000) - seconds;
  return buckets.filter((one) => one.at >= from && one.at < from + seconds).reduce((sum, one) => sum + one.seen, 0) / seconds;
}

/** Return a round number that is not below any value: 1, 2 or 5 times a power of ten. @param {number} most */
export function roundUp(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= most) ?? most;
}

/** Split the text of an event stream. Returns the events and what is left of the last one. @param {string} text
 * @returns {[{event: string, data: string}[], string]} */
export function readEvents(text) {
  const parts = text.split(/\r?\n\r?\n/);
  const rest = parts.pop() ?? "";
  const events = parts.map((part) => {
    const lines = part.split(/\r?\n/);
    const field = (/** @type {string} */ name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim()).join("\n");
    return { event: field("event"), data: field("data") };
  });
  return [events.filter((one) => one.data), rest];
}
