// One raw event as a row: number, time, type and size; its JSON opens on demand, base64 as a chip.

import { make } from "./elements.js";
import { subjectOf } from "./timeline.js";
import { bytes, seconds } from "./units.js";

/** @typedef {import("./wire.js").AnswerEvent} AnswerEvent */

const LONG = 100;
const BASE64 = /^[A-Za-z0-9+/]+=*$/;

/**
 * @param {AnswerEvent} event
 * @param {number} size of its JSON, in characters
 * @param {number} time in milliseconds since the request
 */
export function eventRow(event, size, time) {
  const type = make("span", "type");
  // A small screen leaves out what nearly all types begin with; long ones may break between their words.
  for (const word of event.type.split(/(?<=[._])/)) {
    type.append(word === "response." ? make("span", "root", word) : word, make("wbr", ""));
  }
  const summary = make(
    "summary",
    "",
    make("span", "number", String(event.sequence_number ?? "–")),
    make("span", "time", seconds(time, 2)),
    type,
    make("span", "size", bytes(size)),
  );
  const details = make("details", "", summary);
  // Only the short form is kept: a long conversation would otherwise hold each picture twice.
  const short = JSON.stringify(event, shorten, 2);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(pretty(short));
  });
  const row = make("li", "", details);
  row.dataset.subject = subjectOf(event);
  return row;
}

/**
 * Stand for base64 with its size; the two signs around it occur in no JSON text.
 * @param {string} _key
 * @param {unknown} value
 */
function shorten(_key, value) {
  const encoded = typeof value === "string" && value.length > LONG && BASE64.test(value);
  return encoded ? `\u0001base64 ${bytes(value.length)}\u0002` : value;
}

/** @param {string} json */
function pretty(json) {
  const block = make("pre", "");
  block.tabIndex = 0; // long lines are scrolled with the arrow keys
  for (const [index, piece] of json.split(/"\\u0001|\\u0002"/).entries()) {
    block.append(index % 2 ? make("span", "chip", piece) : piece);
  }
  return block;
}
