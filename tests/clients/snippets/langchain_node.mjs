import { writeFileSync } from "node:fs";
import { ChatOpenAI } from "@langchain/openai";

const model = new ChatOpenAI({
  model: "local",
  apiKey: "-",
  useResponsesApi: true,
  configuration: { baseURL: "http://127.0.0.1:8766/v1" },
});
const answer = await model.bindTools([{ type: "image_generation" }]).invoke("Draw a red cat");
for (const item of answer.additional_kwargs.tool_outputs ?? []) {
  if (item.type === "image_generation_call" && item.result) {
    writeFileSync("cat.png", Buffer.from(item.result, "base64"));
  }
}
console.log(answer.text);
