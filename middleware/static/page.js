// The page's own state: one conversation, at most one request at a time.

import { Answer } from "./answer.js";
import { EventList } from "./event_list.js";
import { eventsOf } from "./sse.js";

const byId = (id) => document.getElementById(id);
const conversation = byId("conversation");
const welcome = byId("welcome");
const form = byId("ask");
const prompt = byId("prompt");
const generate = byId("generate");
const stop = byId("stop");
const events = new EventList(byId("events"), byId("events-sum"));

/** What the model is told of the conversation: user messages, and all output items of its answers. */
let history = [];
let model = "local";
let request = null;

class AnswerError extends Error {}

async function send(text) {
  const message = { role: "user", content: text };
  const mine = new AbortController();
  begin(mine, text);
  const answer = new Answer(conversation, announce);
  conversation.lastElementChild.scrollIntoView({ block: "end" });
  let told = "The answer is complete.";
  try {
    const output = await ask([...history, message], answer, mine.signal);
    history.push(message, ...output);
  } catch (error) {
    told = mine.signal.aborted ? "Stopped." : "";
    if (!told) complain(describe(error));
  }
  following(() => answer.end());
  announce(told);
  finish();
}

/** Ask, show the answer as it comes, and return its items. */
async function ask(input, answer, signal) {
  const response = await fetch("/v1/responses", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, stream: true, input, tools: [tool()] }),
    signal,
  });
  if (!response.ok) throw new AnswerError(await refusal(response));
  for await (const { data } of eventsOf(response)) {
    if (data === "[DONE]") continue;
    const event = JSON.parse(data);
    events.add(event, data.length);
    following(() => answer.receive(event));
    const output = outcome(event);
    if (output) return output;
  }
  throw new AnswerError("The connection was lost before the answer was complete.");
}

/** Return the items if this event ends the answer well. */
function outcome(event) {
  const { type, response } = event;
  if (type === "response.completed") return response.output;
  if (type === "response.incomplete") {
    const reason = response.incomplete_details?.reason;
    throw new AnswerError(`The answer is incomplete${reason ? `: ${reason}` : "."}`);
  }
  if (type === "response.failed" || type === "error") {
    const error = response?.error ?? event.error ?? event;
    throw new AnswerError(error.message || "The answer failed.");
  }
  return null;
}

function tool() {
  const declared = { type: "image_generation", partial_images: Number(byId("partials").value) };
  if (byId("size").value) declared.size = byId("size").value;
  if (byId("format").value) declared.output_format = byId("format").value;
  return declared;
}

async function refusal(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `The server answered with status ${response.status}.`;
  }
}

function describe(error) {
  if (error instanceof AnswerError) return error.message;
  if (error instanceof TypeError) return "The connection was lost. Is the server still running?";
  return `The answer could not be read: ${error.message}`;
}

function begin(controller, text) {
  request = controller;
  welcome.hidden = true;
  byId("banner").hidden = true;
  events.clear();
  const asked = document.createElement("div");
  asked.className = "asked";
  asked.append(document.createElement("p"));
  asked.firstElementChild.textContent = text;
  conversation.append(asked);
  setBusy(true);
}

function finish() {
  request = null;
  setBusy(false);
}

/** Keep the end of the conversation in view through a change, unless the reader has scrolled away. */
function following(change) {
  const beyond = conversation.lastElementChild.getBoundingClientRect().bottom - form.getBoundingClientRect().top;
  change();
  if (beyond < 400) conversation.lastElementChild.scrollIntoView({ block: "end" });
}

function setBusy(busy) {
  const focused = [generate, stop].includes(document.activeElement);
  generate.hidden = busy;
  stop.hidden = !busy;
  conversation.setAttribute("aria-busy", String(busy));
  if (focused) (busy ? stop : prompt).focus();
}

function complain(text) {
  byId("banner-text").textContent = text;
  byId("banner").hidden = false;
}

function announce(text) {
  byId("status").textContent = text;
}

function submit() {
  const text = prompt.value.trim();
  if (!text || request) return;
  prompt.value = "";
  send(text);
}

function startAfresh() {
  request?.abort();
  history = [];
  conversation.replaceChildren(welcome);
  welcome.hidden = false;
  byId("banner").hidden = true;
  events.clear();
  prompt.focus();
}

async function introduce() {
  try {
    const about = await (await fetch("/demo.json")).json();
    model = about.model;
    byId("model").textContent = about.name;
    byId("about-pictures").hidden = about.pictures !== "scene";
  } catch {
    byId("model").textContent = "unknown";
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
prompt.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") request?.abort();
});
for (const idea of document.querySelectorAll(".idea")) {
  idea.addEventListener("click", () => {
    prompt.value = idea.textContent;
    prompt.focus();
    submit();
  });
}
stop.addEventListener("click", () => request?.abort());
byId("fresh").addEventListener("click", startAfresh);
byId("dismiss").addEventListener("click", () => {
  byId("banner").hidden = true;
  prompt.focus();
});
addEventListener("pagehide", () => request?.abort());

introduce();
