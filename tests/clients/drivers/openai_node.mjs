// openai-node: the response continued by its id, replayed whole by the SDK's own helper, or over a WebSocket.
import OpenAI from "openai";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import { ResponsesWS } from "openai/resources/responses/ws";
import { AGAIN, BASE_URL, FORCED, FORM, KEY, PROMPT, TOOL, tell } from "./driver.mjs";

const client = new OpenAI({ baseURL: BASE_URL, apiKey: KEY, maxRetries: 0 });
const choice = FORCED ? { tool_choice: { type: "image_generation" } } : {};
const previews = [];

async function respond(input, more = {}) {
  const asked = { model: "local", input, tools: [TOOL], ...choice, ...more };
  if (FORM === "whole") return client.responses.create(asked);
  const stream = client.responses.stream(asked);
  stream.on("response.image_generation_call.partial_image", (event) => previews.push(event.partial_image_b64));
  return stream.finalResponse();
}

async function overHTTP() {
  const first = await respond(PROMPT);
  if (!AGAIN) return [first];
  const asked = { role: "user", content: PROMPT };
  const again = { role: "user", content: AGAIN };
  const second = FORM === "previous"
    ? await respond([again], { previous_response_id: first.id })
    : await respond([asked, ...toResponseInputItems(first.output), again]);
  return [first, second];
}

async function overWebSocket() {
  const socket = new ResponsesWS(client);
  const completed = () => new Promise((resolve, reject) => {
    socket.on("response.completed", (event) => resolve(event.response));
    socket.on("error", reject);
  });
  const asked = { type: "response.create", model: "local", tools: [TOOL] };
  await new Promise((resolve) => socket.socket.on("open", resolve));
  socket.send({ ...asked, input: PROMPT });
  const first = await completed();
  socket.send({ ...asked, input: AGAIN, previous_response_id: first.id });
  const second = await completed();
  socket.close();
  return [first, second];
}

// Over a WebSocket the SDK does not add its `output_text`.
function textOf(response) {
  return response.output.filter((item) => item.type === "message").map((item) => item.content[0].text).join("");
}

const responses = FORM === "websocket" ? await overWebSocket() : await overHTTP();
const items = responses.flatMap((one) => one.output);
const pictures = items.filter((item) => item.type === "image_generation_call");
tell({
  pictures: pictures.map((item) => item.result),
  texts: responses.map(textOf),
  states: pictures.map((item) => (item.error ? `${item.status}: ${item.error.message}` : item.status)),
  ends: responses.map((one) => one.status),
  previews,
});
