// Consume events, each once: node consume.js BROKERS GROUP TOPIC...
//
// Needs Node.js 18 or newer and kafkajs, which reads events that are compressed with gzip; other codecs need a package of
// their own. Appends each event to events.jsonl, which is also the memory of what has been processed: an event comes again
// if its processing fails, or if a crash prevents that it is remembered. A group of several members needs one store for
// all: a database with a unique key of source and id. SIGTERM stops the consumer after the current batch.
'use strict';

const fs = require('fs');
const { Kafka, logLevel } = require('kafkajs');

const [brokers, groupId, ...topics] = process.argv.slice(2);
if (topics.length === 0) {
  console.error('usage: consume.js BROKERS GROUP TOPIC...');
  process.exit(1);
}

// Two processes would overwrite each other's lines.
function lock(name) {
  try {
    fs.writeFileSync(name, `${process.pid}`, { flag: 'wx' });
  } catch (error) {
    const owner = error.code === 'EEXIST' ? Number(fs.readFileSync(name)) : NaN;
    if (error.code !== 'EEXIST' || (owner !== process.pid && isRunning(owner)))
      throw new Error(`events.jsonl is in use by another consumer, process ${owner}; give each a directory of its own`, { cause: error });
    fs.writeFileSync(name, `${process.pid}`); // the owner was killed
  }
  process.on('exit', () => fs.unlinkSync(name));
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

// The processed events: one line each, on disk before their offsets are committed.
class Journal {
  constructor(name) {
    lock(`${name}.lock`);
    this.file = fs.openSync(name, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
    const content = fs.readFileSync(this.file);
    this.end = content.lastIndexOf('\n') + 1; // a crash may have cut off the last line
    const lines = content.subarray(0, this.end).toString().split('\n').slice(0, -1);
    this.seen = new Set(lines.map(line => key(JSON.parse(line))));
  }

  has(event) {
    return this.seen.has(key(event));
  }

  add(event) {
    const data = Buffer.from(JSON.stringify(event) + '\n');
    fs.ftruncateSync(this.file, this.end); // what an earlier write that failed has left
    for (let written = 0; written < data.length;)
      written += fs.writeSync(this.file, data, written, data.length - written, this.end + written);
    this.end += data.length;
    this.seen.add(key(event));
  }

  sync() {
    fs.fsyncSync(this.file);
  }
}

// Process a new event here. If this throws, the event comes again: await every call.
async function processEvent(event) {
  console.log(event.source, event.id, event.type, event.body);
}

const key = event => JSON.stringify([event.source, event.id]);

function toEvent(topic, { headers, value, offset }) {
  if (!headers?.ce_source || !headers.ce_id) {
    console.error(`${topic}: the record at offset ${offset} is no event: it has no ce_source or ce_id`);
    process.exit(1);
  }
  return { source: String(headers.ce_source), id: String(headers.ce_id), type: String(headers.ce_type), body: String(value) };
}

async function main() {
  const journal = new Journal('events.jsonl');
  const kafka = new Kafka({
    brokers: brokers.split(','),
    logLevel: logLevel.WARN,
    // If the brokers require TLS or a login: put the lines of gatepost-consumers(7), LOGIN, here.
  });
  // Gatepost's topics need other settings than the brokers' defaults.
  const consumer = kafka.consumer({ groupId, readUncommitted: false, allowAutoTopicCreation: false });
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) {
      console.error(payload.error);
      process.exit(1);
    }
  });
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => consumer.disconnect().then(() => process.exit(0))); // leaves the group
  await consumer.connect();
  for (const topic of topics)
    await consumer.subscribe({ topic, fromBeginning: true }).catch(error => {
      throw new Error(`${topic}: ${error.message}`); // such as a topic that does not exist
    });
  await consumer.run({
    // Offsets are committed when this has returned, and not if it throws: then the batch comes again.
    eachBatch: async ({ batch, heartbeat }) => {
      for (const event of batch.messages.map(each => toEvent(batch.topic, each))) {
        if (journal.has(event))
          continue;
        await processEvent(event);
        journal.add(event);
        await heartbeat(); // the group waits 30 s for it
      }
      journal.sync();
    },
  });
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
