// LangChain.js: the messages of the conversation, streamed or not.
import { ChatOpenAI } from "@langchain/openai";
import { AGAIN, BASE_URL, FORCED, FORM, KEY, PROMPT, TOOL, tell } from "./driver.mjs";

const model = new ChatOpenAI({
  model: "local",
  apiKey: KEY,
  maxRetries: 0,
  useResponsesApi: true,
  configuration: { baseURL: BASE_URL },
});
const painter = model.bindTools([TOOL], FORCED ? { tool_choice: { type: "image_generation" } } : {});

async function respond(messages) {
  if (FORM === "whole") return painter.invoke(messages);
  let whole;
  for await (const chunk of await painter.stream(messages)) whole = whole ? whole.concat(chunk) : chunk;
  return whole;
}

const asked = { role: "user", content: PROMPT };
const answers = [await respond([asked])];
if (AGAIN) answers.push(await respond([asked, answers[0], { role: "user", content: AGAIN }]));
const outputs = answers.flatMap((one) => one.additional_kwargs.tool_outputs ?? []);
const pictures = outputs.filter((item) => item.type === "image_generation_call");
tell({
  pictures: pictures.map((item) => item.result),
  texts: answers.map((one) => one.text),
  states: pictures.map((item) => (item.error ? `${item.status}: ${item.error.message}` : item.status)),
  ends: answers.map((one) => one.response_metadata.status),
});
