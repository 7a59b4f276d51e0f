// Writes the types of the API, read from its OpenAPI document on standard input, to the file that is named.
//
// Error responses of single operations are left out: the client throws them, and `Problem` is the union of all.

import { writeFile } from "node:fs/promises";
import { json } from "node:stream/consumers";
import openapiTS, { astToString } from "openapi-typescript";

const METHODS = ["get", "put", "post", "patch", "delete"];
const HEAD = "// Generated from the OpenAPI document of graphmem by `make typescript`; do not edit.\n\n";

const document = await json(process.stdin);
for (const path of Object.values(document.paths)) {
  for (const method of METHODS.filter((name) => name in path)) {
    const { responses } = path[method];
    path[method].responses = Object.fromEntries(Object.entries(responses).filter(([status]) => status < "300"));
  }
}
const types = await openapiTS(document, { defaultNonNullable: false, alphabetize: true, emptyObjectsUnknown: true });
await writeFile(process.argv[2], HEAD + astToString(types));
