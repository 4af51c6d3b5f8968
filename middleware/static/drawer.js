// The drawer with the raw events of one answer: opened, closed, saved from.

import { find } from "./elements.js";

/** @typedef {import("./event_log.js").EventLog} EventLog */

export class Drawer {
  #element = find("drawer", HTMLElement);
  #behind = [find("top", HTMLElement), find("main", HTMLElement)];
  #toggle = find("toggle", HTMLButtonElement);
  #close = find("close", HTMLButtonElement);
  #save = find("save", HTMLButtonElement);
  #title = find("drawer-title", HTMLElement);
  #sum = find("drawer-sum", HTMLElement);
  #content = find("drawer-content", HTMLElement);
  #empty = this.#content.firstElementChild;
  // On a small screen the drawer covers part of the page, which then cannot be reached.
  #covering = matchMedia("(max-width: 64rem)");
  /** @type {EventLog | null} */
  #log = null;

  /** @param {(responseId: string) => void} onSave */
  constructor(onSave) {
    this.#toggle.addEventListener("click", () => this.#set(!this.isOpen));
    this.#close.addEventListener("click", () => this.close());
    this.#save.addEventListener("click", () => this.#log && onSave(this.#log.saveable));
    this.#covering.addEventListener("change", () => this.#set(this.isOpen));
    document.addEventListener("mousedown", (event) => {
      const beside = event.target instanceof Node && !this.#element.contains(event.target);
      if (!beside || !this.isCovering) return;
      event.preventDefault(); // the focus is for us to move
      this.close();
    });
    this.#set(matchMedia("(min-width: 80rem)").matches, false);
  }

  get isOpen() {
    return !this.#element.hidden;
  }

  /** Whether it covers part of the page. */
  get isCovering() {
    return this.isOpen && this.#covering.matches;
  }

  open() {
    this.#set(true);
  }

  close() {
    this.#set(false);
  }

  /**
   * Show the events of an answer, of none at the beginning of a conversation.
   * @param {EventLog | null} log
   */
  show(log) {
    this.#log = log;
    this.#content.replaceChildren(...[log?.element ?? this.#empty].filter((element) => element !== null));
    this.#title.textContent = log ? log.title : "";
    this.refresh(log);
  }

  /**
   * An answer has more to tell, or is complete.
   * @param {EventLog | null} log
   */
  refresh(log) {
    if (log !== this.#log) return;
    this.#sum.textContent = log?.summary ?? "none yet";
    this.#save.disabled = !log?.saveable;
  }

  /**
   * @param {boolean} open
   * @param {boolean} [focus] whether to follow with the focus
   */
  #set(open, focus = this.isOpen !== open) {
    this.#element.hidden = !open;
    this.#toggle.setAttribute("aria-expanded", String(open));
    for (const part of this.#behind) part.inert = this.isCovering;
    document.documentElement.classList.toggle("covered", this.isCovering);
    if (focus) (open ? this.#close : this.#toggle).focus();
  }
}
