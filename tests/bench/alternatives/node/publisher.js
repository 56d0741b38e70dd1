// Publishes records idempotently. An idempotent producer of this client has only one request under way; records that arrive
// meanwhile are sent together in the next one.
import { compatibilityPartitioner, ProduceAcks, Producer } from '@platformatic/kafka'

const MAX_BATCH_BYTES = 1 << 20 // the broker's limit is that of one partition's share
const RECORD_BYTES = 512 // of key and headers, roughly

export class Publisher {
  #producer
  #topic
  #waiting = []
  #busy = false

  static async open(bootstrap, topic) {
    const publisher = new Publisher(bootstrap, topic)
    await publisher.#producer.initIdempotentProducer({})
    await publisher.#producer.metadata({ topics: [topic] })
    return publisher
  }

  constructor(bootstrap, topic) {
    this.#topic = topic
    this.#producer = new Producer({
      clientId: 'bench',
      bootstrapBrokers: bootstrap.split(','),
      idempotent: true,
      acks: ProduceAcks.ALL,
      autocreateTopics: false,
      partitioner: compatibilityPartitioner, // the one that Java's clients use
      retries: 5,
      retryDelay: 100,
      timeout: 8000
    })
  }

  // done(error) is called when all in-sync replicas have the record, or publishing has failed.
  publish(key, value, headers, done) {
    this.#waiting.push({ message: { topic: this.#topic, key, value, headers }, done })
    if (!this.#busy) {
      this.#busy = true
      setImmediate(() => this.#send()) // what else came in this turn of the loop goes along
    }
  }

  #take() {
    let n = 0
    let bytes = 0
    while (n < this.#waiting.length) {
      bytes += this.#waiting[n].message.value.length + RECORD_BYTES
      if (n > 0 && bytes > MAX_BATCH_BYTES) break
      n++
    }
    return n === this.#waiting.length ? this.#waiting.splice(0) : this.#waiting.splice(0, n)
  }

  #send() {
    const batch = this.#take()
    this.#producer.send({ messages: batch.map(each => each.message) }, error => {
      this.#busy = this.#waiting.length > 0
      if (this.#busy) this.#send()
      for (const each of batch) each.done(error)
    })
  }
}
