// @openai/agents: the run's own history (which leaves the pictures out), or the previous response's id,
// over HTTP or a WebSocket.
import {
  Agent,
  OpenAIResponsesModel,
  OpenAIResponsesWSModel,
  imageGenerationTool,
  run,
  setTracingDisabled,
} from "@openai/agents";
import OpenAI from "openai";
import { BASE_URL, FIRST, FORM, KEY, SECOND, tell } from "./driver.mjs";

setTracingDisabled(true);
const client = new OpenAI({ baseURL: BASE_URL, apiKey: KEY, maxRetries: 0 });
const Model = FORM === "websocket" ? OpenAIResponsesWSModel : OpenAIResponsesModel;
const model = new Model(client, "local");
const agent = new Agent({
  name: "painter",
  instructions: "You draw.",
  model,
  tools: [imageGenerationTool()],
});

async function ask(given, more = {}) {
  if (FORM === "whole") return run(agent, given, more);
  const result = await run(agent, given, { ...more, stream: true });
  for await (const _ of result);
  await result.completed;
  return result;
}

const first = await ask(FIRST);
const second = FORM === "previous"
  ? await ask(SECOND, { previousResponseId: first.lastResponseId })
  : await ask([...first.history, { role: "user", content: SECOND }]);
const runs = [first, second];
const calls = runs.flatMap((one) => one.newItems).map((item) => item.rawItem);
tell(
  calls.filter((call) => call.type === "hosted_tool_call").map((call) => call.output),
  runs.map((one) => one.finalOutput),
);
await model.close?.();
