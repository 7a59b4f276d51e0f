/** Memory for the Vercel AI SDK: its own functions, with its model for tests in place of the caller's. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { generateText, stepCountIs, streamText } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { Unavailable, type User } from "graphmem";
import { memoryTools, withMemory } from "graphmem/ai";
import { graphmem, startProxy } from "./support.js";

type Result = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;

const usage: Result["usage"] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

function says(text: string): Result {
  return { content: [{ type: "text", text }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] };
}

function calls(toolName: string, input: object): Result {
  const call = { type: "tool-call", toolCallId: randomUUID(), toolName, input: JSON.stringify(input) } as const;
  return { content: [call], finishReason: { unified: "tool-calls", raw: "tool_calls" }, usage, warnings: [] };
}

const turnsOf = async (user: User, session: string) =>
  (await user.sessionMessages(session).toArray()).map(({ role, content }) => [role, content]);

const contextsIn = (prompt: MockLanguageModelV3["doGenerateCalls"][number]["prompt"]) =>
  prompt.flatMap(({ role, content }) => (role === "system" && content.includes("graphmem_context") ? [content] : []));

test("tools, context and stored turns work in one conversation", async () => {
  const ada = graphmem.user(`ada-${randomUUID()}`);
  const answers = [
    calls("save_memory", { statement: "Ada plays the cello." }),
    calls("search_memory", { query: "instrument" }),
    says("I will remember your cello."),
    says("The cello."),
  ];
  const asked = new MockLanguageModelV3({ doGenerate: async () => answers.shift()! });
  const model = withMemory(asked, ada, { sessionId: "monday" });
  const options = { model, tools: memoryTools(ada), stopWhen: stepCountIs(5), system: "Be brief." };
  await generateText({ ...options, prompt: "I play the cello." });
  const { text } = await generateText({ ...options, prompt: "What do I play?" });

  assert.equal(text, "The cello.");
  const prompts = asked.doGenerateCalls.map((call) => call.prompt);
  assert.deepEqual(prompts.map((prompt) => contextsIn(prompt).length), [1, 1, 1, 1]);
  assert.equal(prompts[0]?.[0]?.content, "Be brief.");
  assert.match(JSON.stringify(prompts[2]?.at(-1)), /Ada plays the cello\./);
  assert.match(contextsIn(prompts[3]!)[0]!, /Ada plays the cello\./);
  assert.deepEqual(await turnsOf(ada, "monday"), [
    ["user", "I play the cello."],
    ["assistant", "I will remember your cello."],
    ["user", "What do I play?"],
    ["assistant", "The cello."],
  ]);
});

test("a streamed reply is stored whole before the stream ends", async () => {
  const ada = graphmem.user(`ada-${randomUUID()}`);
  const chunks = [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Green " },
    { type: "text-delta", id: "1", delta: "tea." },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
  ] as const;
  const asked = new MockLanguageModelV3({
    doStream: async () => ({ stream: simulateReadableStream({ chunks: [...chunks] }) }),
  });
  const { textStream } = streamText({ model: withMemory(asked, ada, { sessionId: "tea" }), prompt: "What do I drink?" });
  const received: string[] = [];
  for await (const text of textStream) received.push(text);
  assert.deepEqual(received, ["Green ", "tea."]);
  assert.deepEqual(await turnsOf(ada, "tea"), [["user", "What do I drink?"], ["assistant", "Green tea."]]);
});

test("a question longer than the context still gets one", async () => {
  const ada = graphmem.user(`ada-${randomUUID()}`);
  await ada.add("Ada plays the cello");
  const asked = new MockLanguageModelV3({ doGenerate: says("The cello.") });
  const prompt = `${"I have a long story to tell. ".repeat(500)}What do I play?`;
  await generateText({ model: withMemory(asked, ada, { tokenBudget: 400, store: false }), prompt });
  assert.match(contextsIn(asked.doGenerateCalls[0]!.prompt)[0]!, /cello/);
  assert.deepEqual(await ada.sessions().toArray(), []);
});

test("the model answers without a memory that fails, and the failure is reported", async () => {
  await using proxy = await startProxy({ status: 503 }, { status: 503 });
  const failures: unknown[] = [];
  const asked = new MockLanguageModelV3({ doGenerate: says("Hello.") });
  const ada = proxy.client({ attempts: 1 }).user(`ada-${randomUUID()}`);
  const model = withMemory(asked, ada, { onError: (error) => failures.push(error) });
  assert.equal((await generateText({ model, prompt: "Hello" })).text, "Hello.");
  assert.deepEqual(failures.map((error) => error instanceof Unavailable), [true, true]);
  assert.equal(proxy.requests.length, 2);
});
