import { gateway, generateText, stepCountIs } from "ai";
import { Graphmem } from "graphmem";
import { memoryTools, withMemory } from "graphmem/ai";

const ada = new Graphmem().user("ada");
const { text } = await generateText({
  model: withMemory(gateway("openai/gpt-5"), ada, { sessionId: "monday" }),
  tools: memoryTools(ada),
  stopWhen: stepCountIs(5),
  prompt: "Where do I live?",
});
console.log(text);
