// A space: what it is about, its members, its memories, what is contested there, and what is in quarantine.

import { apiPath } from "../api.js";
import { card, descriptions, element } from "../dom.js";
import { PagedList } from "../paged_list.js";
import { formatTime } from "../times.js";
import { memoryItem } from "./memory_list.js";
import { contestedCard } from "./space_contested.js";
import { editSpaceCard } from "./space_form.js";
import { mayChangeSpace, membersCard } from "./space_members.js";
import { quarantineCard } from "./space_quarantine.js";

const PAGE_SIZE = 50;
const MAX_USERS = 400;
const MAX_TRIED = 20;
const ROLES = ["owner", "writer", "reader"];

export async function spaceView(context) {
  const space = await context.api.get(apiPath("spaces", context.id));
  context.setTitle(space.title);
  const reader = await findReader(context, space);
  const mayChange = mayChangeSpace(context, space, reader);
  context.root.append(
    card("space", space.title, { level: 1 },
      space.about && element("p", {}, space.about),
      descriptions([["Id", space.id], ["Since", formatTime(space.created_at)], ["Changed", formatTime(space.updated_at)]])),
    membersCard(context, space, mayChange));
  if (mayChange) context.root.append(editSpaceCard(context, space));
  const asReader = reader && context.forUser(reader.user);
  if (asReader) context.root.append(await contestedCard(asReader, space));
  if (context.isAdmin) context.root.append(await quarantineCard(context, space));
  if (asReader) await showMemories(asReader, space);
  else {
    context.root.append(card("memories", "Memories", {}, element("p", { class: "hint" },
      "The memories of a space are read on behalf of a user who is a member: add one that this key has access to.")));
  }
}

async function showMemories(context, space) {
  const title = element("h2", { id: "list-title" }, "Memories");
  const memories = new PagedList(context, {
    id: "memories", nouns: ["memory", "memories"], emptyText: () => "Nothing is stored in this space yet.",
    load: (cursor) => context.api.get(context.userPath("memories"), { space: space.id, limit: PAGE_SIZE, cursor }),
    toItem: (memory) => memoryItem(context, memory), onCount: (text) => { title.textContent = text; },
  });
  context.root.append(element("section", { class: "card", "aria-labelledby": "list-title" }, title, memories.node));
  await memories.fill();
}

/**
 * Return the user on whose behalf the space is read, with the role, or null: a member that the key has access to, of the
 * highest role there is, else, where the key itself is a member, any user of it.
 */
async function findReader(context, space) {
  const members = space.members.filter((member) => member.user);
  if (context.isAdmin && members.length === 0) return null;
  const { items } = context.isAdmin ? { items: [] } : await context.api.list("users", {}, MAX_USERS);
  const own = new Set(items.map((user) => user.user_id));
  const rank = (member) => ROLES.indexOf(member.role) + (own.has(member.user) ? 0 : ROLES.length);
  const candidates = [...members.sort((one, other) => rank(one) - rank(other)).slice(0, MAX_TRIED),
    ...items.slice(0, 1).map((user) => ({ user: user.user_id, role: null }))];
  for (const candidate of candidates) {
    if (await mayRead(context.forUser(candidate.user), space)) return candidate;
  }
  return null;
}

async function mayRead(context, space) {
  try {
    await context.api.get(context.userPath("memories"), { space: space.id, limit: 1 });
    return true;
  } catch (error) {
    if (error.status === 403 || error.status === 404) return false;
    throw error;
  }
}
