// When each event came, as a line of ticks for the response and for each of its items.

import { make } from "./elements.js";

/** @typedef {import("./wire.js").AnswerEvent} AnswerEvent */

const SVG = "http://www.w3.org/2000/svg";
const SHORTEST = 300;
/** @type {Record<string, string>} */
const NAMES = { image_generation_call: "picture", reasoning: "thoughts", message: "text", function_call: "call" };

/**
 * Tell what an event is about, as colours do.
 * @param {AnswerEvent} event
 * @returns {"response" | "picture" | "words"}
 */
export function subjectOf({ type, item }) {
  if (/image_generation_call/.test(type) || item?.type === "image_generation_call") return "picture";
  return /^response\.(output|content|reasoning|function)/.test(type) ? "words" : "response";
}

/** What is seen here is told by the rows below, so that this is for the eye only. */
export class Timeline {
  element = make("div", "timeline");
  /** @type {Map<number | "response", SVGElement>} */
  #lanes = new Map();
  #pictures = 0;
  #end = SHORTEST;

  constructor() {
    this.element.setAttribute("aria-hidden", "true");
  }

  /**
   * @param {AnswerEvent} event
   * @param {number} time in milliseconds since the request
   */
  add(event, time) {
    const key = event.output_index ?? "response";
    const lane = this.#lanes.get(key) ?? this.#open(key, event);
    lane.append(tick(time, event));
    this.#end = Math.max(this.#end, time * 1.02);
    for (const each of this.#lanes.values()) each.setAttribute("viewBox", `0 0 ${this.#end} 1`);
  }

  /**
   * @param {number | "response"} key
   * @param {AnswerEvent} event the lane's first
   */
  #open(key, event) {
    const lane = document.createElementNS(SVG, "svg");
    lane.setAttribute("preserveAspectRatio", "none");
    lane.dataset.subject = subjectOf(event);
    let name = key === "response" ? key : (NAMES[event.item?.type ?? ""] ?? "item");
    if (name === "picture") name += ` ${(this.#pictures += 1)}`;
    this.element.append(make("span", "", name), lane);
    this.#lanes.set(key, lane);
    return lane;
  }
}

/**
 * @param {number} time
 * @param {AnswerEvent} event
 */
function tick(time, event) {
  const line = document.createElementNS(SVG, "line");
  const isStep = !event.type.endsWith(".delta");
  const ends = { x1: time, x2: time, y1: isStep ? 0 : 0.3, y2: isStep ? 1 : 0.7 };
  for (const [name, value] of Object.entries(ends)) line.setAttribute(name, String(value));
  return line;
}
