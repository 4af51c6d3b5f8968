// The raw events beside the conversation: one row each, whose JSON opens on demand.

const LONG = 100;
const MOST_ROWS = 2000;

/** Show sizes as people read them. */
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  return count < 1e6 ? `${(count / 1e3).toFixed(1)} kB` : `${(count / 1e6).toFixed(1)} MB`;
}

export class EventList {
  #list;
  #sum;
  #count = 0;
  #size = 0;

  constructor(list, sum) {
    this.#list = list;
    this.#sum = sum;
  }

  clear() {
    this.#list.replaceChildren();
    this.#count = this.#size = 0;
    this.#sum.textContent = "none yet";
  }

  /** Add one event; `size` is that of its JSON text. */
  add(event, size) {
    const list = this.#list;
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    this.#count += 1;
    this.#size += size;
    this.#sum.textContent = `${this.#count}, ${bytes(this.#size)}`;
    list.append(row(event, size));
    if (list.childElementCount > MOST_ROWS) list.firstElementChild.remove();
    if (atEnd) list.scrollTop = list.scrollHeight;
  }
}

function row(event, size) {
  const item = document.createElement("li");
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  const type = span("type", "");
  for (const word of event.type.split(/(?<=[._])/)) type.append(word, document.createElement("wbr"));
  summary.append(span("number", event.sequence_number ?? "–"), type, span("size", bytes(size)));
  if (/image_generation_call/.test(event.type) || event.item?.type === "image_generation_call") {
    item.className = "picture-event";
  }
  // Only the short form is kept: a long conversation would otherwise hold each picture twice.
  const short = JSON.stringify(event, shorten, 2);
  details.append(summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(pretty(short));
  });
  item.append(details);
  return item;
}

function span(name, text) {
  const element = document.createElement("span");
  element.className = name;
  element.textContent = text;
  return element;
}

/** Stand for base64 with its size; the two signs around it occur in no JSON text. */
function shorten(key, value) {
  const encoded = typeof value === "string" && value.length > LONG && /^[A-Za-z0-9+/]+=*$/.test(value);
  return encoded ? `\u0001base64 ${bytes(value.length)}\u0002` : value;
}

function pretty(json) {
  const block = document.createElement("pre");
  for (const [index, piece] of json.split(/"\\u0001|\\u0002"/).entries()) {
    block.append(index % 2 ? span("chip", piece) : piece);
  }
  return block;
}
