// Reads an AsyncAPI document with AsyncAPI's own parser. Prints what the parser has to say about it, and the document with
// every reference resolved and every trait applied, as JSON. NODE_PATH says where the parser stands.
'use strict';

const fs = require('fs');
const { Parser } = require('@asyncapi/parser');

async function main() {
  const { document, diagnostics } = await new Parser().parse(fs.readFileSync(process.argv[2], 'utf8'));
  const found = diagnostics.map(({ code, message, path, severity }) => ({ code, message, path: path.join('.'), severity }));
  process.stdout.write(JSON.stringify({ diagnostics: found, document: document ? document.json() : null }));
}

main();
