// Search by meaning, with what each score and each place in the order comes from.

import { announce, card, element, field, list, pluralize, reportErrors, select } from "../dom.js";
import { formatTime, readLocalText } from "../times.js";
import { MEMORY_TYPES, channelWord, percent, toWords } from "../wording.js";
import { memoryItem } from "./memory_list.js";

const CHANNELS = ["semantic", "keyword", "graph"];
const FACTORS = [["persona", "persona"], ["decay", "age"], ["importance", "importance"], ["time", "time asked about"]];

export async function searchView(context) {
  const query = context.query.get("q") ?? "";
  const type = context.query.get("type") ?? "";
  const asOf = context.query.get("at") ?? "";
  const messages = context.query.get("messages") === "on";
  const results = element("div", {});
  const form = element("form", { id: "search-form", role: "search", onSubmit: (event) => {
    event.preventDefault();
    const given = new FormData(form);
    context.openQuery(Object.fromEntries([...given].map(([name, value]) => [name, value.trim()])));
  } },
  element("div", { class: "filters" },
    field("Question or words", element("input", { type: "search", id: "find", name: "q", value: query, autocomplete: "off", spellcheck: "false", required: true })),
    field("Type", select({ name: "type" }, [["", "any"], ...MEMORY_TYPES.map((name) => [name, toWords(name)])], type)),
    field("True at", element("input", { type: "datetime-local", name: "at", value: asOf, step: 1 })),
    element("label", { class: "inline" }, element("input", { type: "checkbox", name: "messages", checked: messages }), "messages too"),
    element("button", { type: "submit", class: "main" }, "Search")));
  context.root.append(card("search", "Search by meaning", { level: 1 }, form), results);
  if (!query) {
    form.querySelector("input").focus();
    return;
  }
  const time = readLocalText(asOf) ? { valid_as_of: readLocalText(asOf).toISOString() } : {};
  results.before(answerCard(context, { question: query, reinforce: false, ...time }));
  const found = await context.api.post(context.userPath("search"), {
    query, limit: 20, explain: true, reinforce: false, include_messages: messages, ...(type && { types: [type] }), ...time,
  });
  results.append(card("results", `${pluralize(found.results.length, "memory", "memories")} found`, {},
    element("p", { class: "hint" }, "A score of 0.50 or more means that the memory fits the question."),
    list({ id: "results" }, found.results.map((hit, index) => hitItem(context, hit, index)), "Nothing fits.")));
  if (messages) {
    results.append(card("message-results", "Messages", {}, list({ id: "message-results" },
      found.messages.map(({ message, score }) => element("li", {}, element("a", { class: "row", href: context.link("sessions", message.session_id) },
        element("span", { class: "name" }, message.content), element("span", { class: "hint" }, `${message.name ?? message.role} · score ${score.toFixed(2)}`)))),
      "No message fits.")));
  }
  announce(`${pluralize(found.results.length, "memory", "memories")} found in ${Math.round(found.took_ms)} ms.`);
}

/** Return a card whose button has a language model answer the question, which the view does not do by itself. */
function answerCard(context, body) {
  const answer = element("div", { id: "answer" });
  const button = element("button", { type: "button", id: "ask", onClick: async () => {
    button.disabled = true;
    announce("The language model reads what memory has.");
    await reportErrors(async () => {
      const response = await context.api.post(context.userPath("ask"), body);
      answer.replaceChildren(element("p", {}, response.answer ?? "Memory has no answer to this."),
        list({ id: "citations" }, response.citations.map((citation) => citationItem(context, citation)), "It cites nothing."));
      announce(response.answered ? `Answered from ${pluralize(response.citations.length, "place")} in memory.` : "Memory has no answer.");
    });
    button.disabled = false;
  } }, "Answer the question");
  return card("ask", "Answer", {}, element("p", { class: "hint" }, "A language model reads what memory has, and quotes its sources."), button, answer);
}

function citationItem(context, { memory_id: memoryId, quote, valid_at: validAt }) {
  const words = [element("span", { class: "name" }, `“${quote}”`),
    element("span", { class: "hint" }, `${memoryId ? "a memory" : "a message"}${validAt ? `, ${formatTime(validAt)}` : ""}`)];
  return element("li", {}, memoryId ? element("a", { class: "row", href: context.link("memories", memoryId) }, ...words) : element("div", { class: "row" }, ...words));
}

function hitItem(context, hit, index) {
  const score = element("p", { class: "score" },
    element("meter", { min: 0, max: 1, low: 0.5, value: hit.score, "aria-label": `Score ${hit.score.toFixed(2)}` }),
    element("span", { class: "hint" }, ` score ${hit.score.toFixed(2)}`));
  return memoryItem(context, hit.memory, { extra: [score, element("details", { class: "explain", open: index === 0 },
    element("summary", {}, "Why it was found"), element("ul", {}, ...explain(hit.explain).map((sentence) => element("li", {}, sentence))))] });
}

/** Return sentences on what a score and a place in the order come from. */
function explain(explanation) {
  const channels = CHANNELS.filter((name) => explanation[name]).map((name) => `${channelWord(name)} (place ${explanation[name].rank})`);
  const factors = FACTORS.filter(([name]) => Math.abs(explanation[name] - 1) > 0.005)
    .map(([name, word]) => `${word} × ${explanation[name].toFixed(2)}`);
  return [
    channels.length ? `Found by ${channels.join(", ")}.` : "Found around a named entity.",
    `Similar in meaning: ${percent(explanation.similarity)}; words of the question in it: ${percent(explanation.words)}.`,
    explanation.named > 0 && `The question names its entity (how specific: ${percent(explanation.named)}).`,
    explanation.rerank !== null && explanation.rerank !== undefined && `A cross-encoder scored it ${explanation.rerank.toFixed(2)}.`,
    factors.length ? `Its place in the order was weighted by ${factors.join(", ")}.` : "Nothing weighted its place in the order.",
  ].filter(Boolean);
}
