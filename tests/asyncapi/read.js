// Reads an AsyncAPI document with AsyncAPI's own parser. Prints what the parser has to say about it, and the document with
// every reference resolved and every trait applied, as JSON. NODE_PATH says where the parser stands.
'use strict';

const fs = require('fs');
const { Parser } = require('@asyncapi/parser');

async function main() {
  const source = process.argv[2]; // to which references to other files are relative
  const { document, diagnostics } = await new Parser().parse(fs.readFileSync(source, 'utf8'), { source });
  const found = diagnostics.map(({ code, message, path, severity }) => ({ code, message, path: path.join('.'), severity }));
  process.stdout.write(JSON.stringify({ diagnostics: found, document: document ? document.json() : null }));
}

main();
