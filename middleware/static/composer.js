// The prompt box: what to say, with which options, and which picture to change.

import { find } from "./elements.js";
import { ToolOptions } from "./tool_options.js";

/** @typedef {import("./wire.js").Item} Item */
/** @typedef {import("./wire.js").Declaration} Declaration */
/** @typedef {{text: string, tool: Declaration, edited: Item | null}} Question */

export class Composer {
  #form = find("ask", HTMLFormElement);
  #prompt = find("prompt", HTMLTextAreaElement);
  #generate = find("generate", HTMLButtonElement);
  #stop = find("stop", HTMLButtonElement);
  #editing = find("editing", HTMLElement);
  #editedImage = find("edited-image", HTMLImageElement);
  #editedPrompt = find("edited-prompt", HTMLElement);
  #options = new ToolOptions();
  #placeholder = this.#prompt.placeholder;
  /** @type {Item | null} */
  #edited = null;
  #busy = false;
  #onAsk;

  /**
   * @param {(question: Question) => void} onAsk
   * @param {() => void} onStop
   */
  constructor(onAsk, onStop) {
    this.#onAsk = onAsk;
    this.#stop.addEventListener("click", onStop);
    find("edit-nothing", HTMLButtonElement).addEventListener("click", () => this.editNothing());
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#prompt.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.#submit();
      }
    });
  }

  focus() {
    this.#prompt.focus();
  }

  /**
   * Ask this, as if it had been typed.
   * @param {string} text
   */
  say(text) {
    this.#prompt.value = text;
    this.focus();
    this.#submit();
  }

  /**
   * Let the next question be about changing this picture.
   * @param {Item} item
   * @param {string} url where the page has it
   */
  edit(item, url) {
    this.#edited = item;
    this.#editedImage.src = url;
    this.#editedPrompt.textContent = item.revised_prompt || "this picture";
    this.#editing.hidden = false;
    this.#prompt.placeholder = "Make it blue";
    this.#form.scrollIntoView({ block: "nearest" });
    this.#prompt.focus({ preventScroll: true });
  }

  editNothing() {
    if (!this.#edited) return;
    this.#edited = null;
    this.#editing.hidden = true;
    this.#editedImage.removeAttribute("src");
    this.#prompt.placeholder = this.#placeholder;
    this.focus();
  }

  /**
   * One answer at a time: while it comes, it can be stopped, and the next question can be written.
   * @param {boolean} busy
   */
  setBusy(busy) {
    const focused = [this.#generate, this.#stop].some((button) => button === document.activeElement);
    this.#busy = busy;
    this.#generate.hidden = busy;
    this.#stop.hidden = !busy;
    if (focused) (busy ? this.#stop : this.#prompt).focus();
  }

  #submit() {
    const text = this.#prompt.value.trim();
    if (!text || this.#busy) return;
    const edited = this.#edited;
    this.#prompt.value = "";
    this.editNothing();
    this.#onAsk({ text, tool: this.#options.declaration(), edited });
  }
}
