/** The server that the tests run against, and a proxy in front of it that fails. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Graphmem, type GraphmemOptions } from "graphmem";

export const SERVER_URL = process.env["GRAPHMEM_URL"] ?? "";
export const ADMIN_KEY = process.env["GRAPHMEM_ADMIN_KEY"] ?? "";

/** The ids of the statements that are in quarantine. */
export const QUARANTINED = (process.env["GRAPHMEM_QUARANTINED"] ?? "").split(",");

/** A client whose address and key are those of the environment. */
export const graphmem = new Graphmem();

/** An answer that a proxy gives itself. */
export interface Refusal {
  status: number;
  headers?: Record<string, string>;
  body?: string;
}

export interface Proxy extends AsyncDisposable {
  /** A client that calls through the proxy. */
  client(options?: GraphmemOptions): Graphmem;
  /** The requests that arrived. */
  requests: { method: string; url: string; headers: Record<string, string | string[] | undefined> }[];
}

/**
 * Starts a proxy that answers the first requests with refusals, or not at all where there is none, and passes the
 * others on; the server's answer to a request that it drops is lost on the way.
 */
export async function startProxy(...refusals: (Refusal | "drop" | "silence")[]): Promise<Proxy> {
  const requests: Proxy["requests"] = [];
  const server = createServer(async (request, response) => {
    const { method = "GET", url = "/", headers } = request;
    requests.push({ method, url, headers });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const refusal = refusals.shift();
    if (typeof refusal === "object") {
      response.writeHead(refusal.status, refusal.headers).end(refusal.body);
      return;
    }
    if (refusal === "silence") return;
    const passed = Object.entries(headers).filter(([name]) => !["host", "connection", "content-length"].includes(name));
    const answer = await fetch(SERVER_URL + url, {
      method,
      headers: passed as [string, string][],
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const body = await answer.text();
    if (refusal === "drop") response.destroy();
    else response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    requests,
    client: (options = {}) => new Graphmem({ baseUrl, ...options }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
