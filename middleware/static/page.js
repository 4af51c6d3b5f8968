// The page's own state: one conversation, at most one request at a time.

import { ask } from "./answer_stream.js";
import { Banner } from "./banner.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { Drawer } from "./drawer.js";
import { find } from "./elements.js";
import { Exchange } from "./exchange.js";
import { saveRecording } from "./recording.js";

/** @typedef {import("./composer.js").Question} Question */

const place = find("conversation", HTMLElement);
const welcome = find("welcome", HTMLElement);
const status = find("status", HTMLElement);
const composer = new Composer(send, stop);
const banner = new Banner(() => composer.focus());
const drawer = new Drawer(save);

let conversation = new Conversation();
let model = "local";
/** @type {AbortController | null} */
let request = null;
/** @type {Exchange[]} */
let exchanges = [];

/** @param {Question} question */
async function send(question) {
  const mine = new AbortController();
  request = mine;
  const exchange = begin(question);
  const body = conversation.request(model, question.text, question.tool, question.edited);
  const asked = conversation;
  let told = "The answer is complete.";
  try {
    const output = await ask(body, mine.signal, (event, size) => {
      exchange.receive(event, size);
      drawer.refresh(exchange.log);
    });
    asked.keep(body, output);
  } catch (error) {
    told = mine.signal.aborted ? "Stopped." : "";
    if (!told) banner.show(describe(error), () => again(question));
  }
  exchange.end();
  drawer.refresh(exchange.log);
  announce(told);
  request = null;
  composer.setBusy(false);
}

/**
 * Make room for an answer. The newest stands on top, next to the prompt box.
 * @param {Question} question
 */
function begin(question) {
  banner.hide();
  welcome.hidden = true;
  const exchange = new Exchange(question, { announce, edit, showEvents });
  exchanges.push(exchange);
  place.prepend(exchange.element);
  exchange.element.scrollIntoView({ block: "nearest" });
  drawer.show(exchange.log);
  composer.setBusy(true);
  return exchange;
}

function stop() {
  request?.abort();
}

/** @param {Question} question */
function again(question) {
  if (!request) send(question);
  composer.focus();
}

/** @type {import("./picture_card.js").Surroundings["edit"]} */
function edit(item, url) {
  composer.edit(item, url);
}

/** @param {import("./event_log.js").EventLog} log */
function showEvents(log) {
  drawer.show(log);
  drawer.open();
}

/** @param {string} responseId */
async function save(responseId) {
  try {
    await saveRecording(responseId);
    announce("The recording is saved.");
  } catch (error) {
    banner.show(describe(error));
  }
}

function startAfresh() {
  stop();
  conversation = new Conversation();
  for (const exchange of exchanges) exchange.dispose();
  exchanges = [];
  place.replaceChildren(welcome);
  welcome.hidden = false;
  banner.hide();
  drawer.show(null);
  composer.editNothing();
  composer.focus();
}

/** @param {unknown} error */
function describe(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {string} text */
function announce(text) {
  status.textContent = text;
}

async function introduce() {
  const name = find("model", HTMLElement);
  try {
    const about = await (await fetch("/demo.json")).json();
    model = about.model;
    name.textContent = about.name;
    find("about-pictures", HTMLElement).hidden = about.pictures !== "scene";
  } catch {
    name.textContent = "unknown";
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (drawer.isCovering) drawer.close();
  else if (request) stop();
  else composer.editNothing();
});
for (const idea of document.querySelectorAll(".idea")) {
  idea.addEventListener("click", () => composer.say(idea.textContent ?? ""));
}
find("fresh", HTMLButtonElement).addEventListener("click", startAfresh);
// A page that the browser keeps for the way back would else go on reading.
addEventListener("pagehide", stop);

introduce();
