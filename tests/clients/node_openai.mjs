// openai-node: the response continued by its id, replayed whole by the SDK's own helper, or over a WebSocket.
import OpenAI from "openai";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import { ResponsesWS } from "openai/resources/responses/ws";
import { BASE_URL, FIRST, FORM, KEY, SECOND, TOOL, tell } from "./driver.mjs";

const client = new OpenAI({ baseURL: BASE_URL, apiKey: KEY, maxRetries: 0 });

async function respond(input, more = {}) {
  const asked = { model: "local", input, tools: [TOOL], ...more };
  return FORM === "whole" ? client.responses.create(asked) : client.responses.stream(asked).finalResponse();
}

async function overHTTP() {
  const asked = { role: "user", content: FIRST };
  const again = { role: "user", content: SECOND };
  const first = await respond(FIRST);
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
  socket.send({ ...asked, input: FIRST });
  const first = await completed();
  socket.send({ ...asked, input: SECOND, previous_response_id: first.id });
  const second = await completed();
  socket.close();
  return [first, second];
}

const responses = FORM === "websocket" ? await overWebSocket() : await overHTTP();
const items = responses.flatMap((one) => one.output);
const texts = items.filter((item) => item.type === "message").map((item) => item.content[0].text);
tell(items.filter((item) => item.type === "image_generation_call").map((item) => item.result), texts);
