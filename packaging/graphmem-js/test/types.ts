/** What the compiler accepts and refuses: these lines are checked, never run. */

import type { GraphmemError, Memory, Problem, SaveResult, User } from "graphmem";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <T extends true>(_?: T) => undefined;

export async function checkTypes(ada: User, error: GraphmemError, problem: Problem): Promise<void> {
  same<Equal<Awaited<ReturnType<typeof ada.add>>, SaveResult[]>>();
  const { results } = await ada.search("tea", { limit: 3, types: ["preference"] });
  same<Equal<(typeof results)[number]["memory"], Memory>>();
  same<Equal<Memory["valid_at"], string | null>>();
  for await (const memory of ada.memories()) same<Equal<typeof memory, Memory>>();

  const accepted = await ada.messages([{ role: "user", content: "Hello" }]);
  same<Equal<typeof accepted.job_id, string | null>>();
  const job = await ada.messages([{ role: "user", content: "Hello" }], { wait: true });
  same<Equal<typeof job.status, "queued" | "running" | "succeeded" | "skipped" | "failed">>();

  if (problem.type === "urn:graphmem:problem:version-conflict") same<Equal<typeof problem.status, 409>>();
  same<Equal<GraphmemError["problem"], typeof error.problem>>();

  await ada.search("tea", { spaces: "none", min_trust: "document", include_contested: true });
  await ada.messages([{ role: "user", content: "Hello" }], { space: "atlas" });
  // @ts-expect-error Sources are trusted as much as one of those that the API knows.
  await ada.search("tea", { min_trust: "rumour" });
  // @ts-expect-error A role is one of those that the API knows.
  await ada.messages([{ role: "narrator", content: "Hello" }]);
  // @ts-expect-error A search has no such option.
  await ada.search("tea", { limits: 3 });
  // @ts-expect-error A memory is created with content.
  await ada.add({ type: "fact" });
  // @ts-expect-error There is no such type of problem.
  if (problem.type === "urn:graphmem:problem:teapot") return;
}
