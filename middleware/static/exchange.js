// One question and its answer on the page, with the raw events behind it.

import { Answer } from "./answer.js";
import { make, makeButton } from "./elements.js";
import { EventLog } from "./event_log.js";

/** @typedef {import("./wire.js").AnswerEvent} AnswerEvent */
/** @typedef {import("./composer.js").Question} Question */

let made = 0;

export class Exchange {
  #title = make("h2", "asked");
  element = make("article", "exchange", this.#title);
  #answer;
  #events;

  /**
   * @param {Question} question
   * @param {object} page
   * @param {(text: string) => void} page.announce
   * @param {import("./picture_card.js").Surroundings["edit"]} page.edit
   * @param {(log: EventLog) => void} page.showEvents
   */
  constructor(question, page) {
    this.log = new EventLog(question.text);
    this.#answer = new Answer({ announce: page.announce, edit: page.edit, tool: question.tool });
    this.#events = makeButton("events-button", "Events", () => page.showEvents(this.log));
    this.#title.id = `question-${(made += 1)}`;
    this.#title.textContent = question.text;
    this.element.setAttribute("aria-labelledby", this.#title.id);
    this.element.setAttribute("aria-busy", "true");
    if (question.edited) {
      const what = question.edited.revised_prompt || "a picture";
      this.#title.before(make("p", "about", `Edit of “${what}”`));
    }
    this.element.append(this.#answer.element, make("p", "footer", this.#events));
  }

  /**
   * @param {AnswerEvent} event
   * @param {number} size of its JSON, in characters
   */
  receive(event, size) {
    this.log.add(event, size);
    this.#answer.receive(event);
  }

  /** The stream has ended, well or badly. */
  end() {
    this.log.close();
    this.#answer.end();
    this.#events.textContent = this.log.summary;
    this.#events.setAttribute("aria-label", `Show the events of this answer: ${this.log.summary}`);
    this.element.setAttribute("aria-busy", "false");
  }

  /** Give the pictures' memory back. */
  dispose() {
    this.#answer.dispose();
  }
}
