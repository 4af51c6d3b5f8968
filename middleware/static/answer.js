// One answer of the model as it grows: its texts, and a card for each picture.

import { bytes } from "./event_list.js";

const PREFIX = "response.image_generation_call.";
const SUFFIXES = { jpeg: "jpg" };

export class Answer {
  #root;
  #announce;
  #parts = new Map();
  #pictures = 0;

  /**
   * @param {HTMLElement} conversation where the answer is appended
   * @param {(text: string) => void} announce tells people who cannot see it
   */
  constructor(conversation, announce) {
    this.#announce = announce;
    this.#root = make("article", "answer");
    this.#root.setAttribute("aria-label", "Answer");
    this.#root.append(make("p", "waiting", "Waiting for the model…"));
    conversation.append(this.#root);
  }

  /** Show what one event of the stream means. */
  receive(event) {
    const index = event.output_index;
    if (event.type === "response.output_item.added") this.#added(index, event.item);
    else if (event.type === "response.output_item.done") this.#done(index, event.item);
    else if (event.type.startsWith(PREFIX)) this.#picture(index).receive(event);
    else if (event.type === "response.output_text.delta") this.#text(index, "said").add(event.delta);
    else if (/^response\.reasoning.*\.delta$/.test(event.type)) this.#text(index, "thought").add(event.delta);
  }

  /** The stream has ended, well or badly: nothing stays in motion. */
  end() {
    this.#root.querySelector(".waiting")?.remove();
    for (const part of this.#parts.values()) part.end?.();
    for (const paragraph of this.#root.querySelectorAll(".said:empty")) paragraph.remove();
    if (!this.#root.childElementCount) this.#root.append(make("p", "note", "No answer."));
  }

  #added(index, item) {
    if (item.type === "image_generation_call") this.#picture(index).state("in_progress");
    if (item.type === "message") this.#text(index, "said");
  }

  #done(index, item) {
    if (item.type === "image_generation_call") this.#picture(index).finish(item);
    if (item.type === "function_call") {
      const call = make("p", "call");
      call.append(make("code", "", `${item.name}(${item.arguments})`), " is for the client to run.");
      this.#part(index, () => ({ element: call }));
    }
  }

  #part(index, build) {
    if (!this.#parts.has(index)) {
      this.#root.querySelector(".waiting")?.remove();
      const part = build();
      this.#parts.set(index, part);
      this.#place(part);
    }
    return this.#parts.get(index);
  }

  /** Pictures that follow each other share a row. */
  #place(part) {
    const isPicture = part instanceof Picture;
    let row = this.#root.lastElementChild;
    if (isPicture && !row?.classList.contains("pictures")) {
      row = make("div", "pictures");
      this.#root.append(row);
    }
    (isPicture ? row : this.#root).append(part.element);
  }

  #text(index, kind) {
    return this.#part(index, () => (kind === "said" ? new Said() : new Thought()));
  }

  #picture(index) {
    return this.#part(index, () => new Picture((this.#pictures += 1), this.#announce));
  }
}

class Said {
  element = make("p", "said");

  add(delta) {
    this.element.append(delta);
  }
}

class Thought {
  element = make("details", "thought");
  #text = make("p", "");

  constructor() {
    this.element.append(make("summary", "", "Thoughts"), this.#text);
  }

  add(delta) {
    this.#text.append(delta);
  }
}

class Picture {
  element = make("figure", "picture");
  #frame = make("div", "frame");
  #image = null;
  #state = make("span", "state");
  #elapsed = make("span", "elapsed");
  #caption = make("figcaption", "");
  #number;
  #announce;
  #began = performance.now();
  #clock = setInterval(() => this.#tick(), 100);

  constructor(number, announce) {
    this.#number = number;
    this.#announce = announce;
    const head = make("p", "progress");
    head.append(this.#state, this.#elapsed);
    this.element.append(this.#frame, head, this.#caption);
    this.element.dataset.state = "in_progress";
  }

  receive(event) {
    const step = event.type.slice(PREFIX.length);
    if (step !== "partial_image") {
      this.state(step);
      return;
    }
    this.state("partial_image", `partial_image ${event.partial_image_index}`);
    this.#show(event.partial_image_b64, event.output_format, `Preview ${event.partial_image_index + 1}`);
  }

  state(name, text = name) {
    this.element.dataset.state = name;
    this.#state.textContent = text;
    if (name === "generating") this.#announce(`Picture ${this.#number} is being made.`);
  }

  finish(item) {
    this.#stopClock();
    const prompt = item.revised_prompt || `Picture ${this.#number}`;
    if (!item.result) {
      this.#fail(item.error?.message || "The picture could not be made.");
      return;
    }
    this.state("completed");
    const { blob, url } = this.#show(item.result, item.output_format, prompt);
    const facts = [item.size, item.output_format, bytes(blob.size)].filter(Boolean).join(" · ");
    const save = make("a", "save", "Download");
    save.href = url;
    save.download = `picture-${this.#number}.${SUFFIXES[item.output_format] ?? item.output_format ?? "png"}`;
    this.#caption.replaceChildren(make("span", "prompt", prompt), make("span", "facts", facts), save);
    this.#announce(`Picture ${this.#number} is finished: ${prompt}`);
  }

  end() {
    if (!["completed", "failed"].includes(this.element.dataset.state)) this.#fail("This picture was not finished.");
  }

  #fail(message) {
    this.#stopClock();
    this.state("failed");
    this.#caption.replaceChildren(make("span", "problem", message));
    this.#announce(`Picture ${this.#number} failed: ${message}`);
  }

  #show(base64, format, alt) {
    const blob = new Blob([Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0))], {
      type: `image/${format ?? "png"}`,
    });
    const url = URL.createObjectURL(blob);
    const image = make("img", "");
    image.alt = alt;
    image.src = url;
    const before = this.#image;
    // The old one stays until the new one can be painted, so that nothing flickers.
    image.decode().catch(() => {}).then(() => {
      if (this.#image !== image) return;
      this.#frame.replaceChildren(image);
      if (before) URL.revokeObjectURL(before.src);
    });
    this.#image = image;
    return { blob, url };
  }

  #tick() {
    this.#elapsed.textContent = `${((performance.now() - this.#began) / 1000).toFixed(1)} s`;
  }

  #stopClock() {
    this.#tick();
    clearInterval(this.#clock);
  }
}

function make(name, className, text = "") {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}
