// A receiver on Fastify.
import Fastify from 'fastify'

import { Checks, Memory } from './delivery.js'
import { Publisher } from './publisher.js'

const MAX_BODY = 1 << 20
const { PORT, BOOTSTRAP, TOPIC, SECRET, WEBHOOK_PATH, HEADER_PREFIX, TOLERANCE_S } = process.env

const checks = new Checks(SECRET, Number(TOLERANCE_S))
const memory = new Memory()
const publisher = await Publisher.open(BOOTSTRAP, TOPIC)

const OK = Buffer.from('{"ok":true}')
const refusal = code => Buffer.from(`{"ok":false,"error":{"code":"${code}"}}`)
const BAD_REQUEST = refusal('BAD_REQUEST')
const INVALID_SIGNATURE = refusal('INVALID_SIGNATURE')
const STALE_TIMESTAMP = refusal('STALE_TIMESTAMP')
const UNAVAILABLE = refusal('UNAVAILABLE')

const header = name => `${HEADER_PREFIX}-${name}`
const [signatureHeader, timestampHeader] = [header('signature'), header('timestamp')]
const [webhookHeader, deliveryHeader] = [header('webhook-id'), header('delivery-id')]

// Constant headers of a record.
const [SOURCE, WEBHOOK_ID, TIMESTAMP, SIGNATURE, RECEIVED, INSTANCE] = [
  'source', 'webhook-id', 'timestamp', 'signature', 'received', 'instance'
].map(name => Buffer.from(`gatepost-${name}`))
const [SOURCE_VALUE, INSTANCE_VALUE] = [Buffer.from('invoicing'), Buffer.from('bench')]

function recordHeaders(webhookId, timestamp, signature) {
  return new Map([
    [SOURCE, SOURCE_VALUE],
    [WEBHOOK_ID, Buffer.from(webhookId)],
    [TIMESTAMP, Buffer.from(timestamp)],
    [SIGNATURE, Buffer.from(signature)],
    [RECEIVED, Buffer.from(new Date().toISOString())],
    [INSTANCE, INSTANCE_VALUE]
  ])
}

function answer(reply, status, text) {
  reply.code(status).header('content-type', 'application/json').send(text)
}

function receive(request, reply) {
  const { headers, body } = request
  const signature = headers[signatureHeader]
  const timestamp = headers[timestampHeader]
  const webhookId = headers[webhookHeader]
  const id = headers[deliveryHeader]
  if (!id || !webhookId || !Buffer.isBuffer(body)) return answer(reply, 400, BAD_REQUEST)
  if (!checks.isGenuine(signature, timestamp, body)) return answer(reply, 401, INVALID_SIGNATURE)
  if (!checks.isFresh(timestamp)) return answer(reply, 401, STALE_TIMESTAMP)
  if (memory.has(id)) return answer(reply, 200, OK)
  publisher.publish(Buffer.from(id), body, recordHeaders(webhookId, timestamp, signature), error => {
    if (error) return answer(reply, 503, UNAVAILABLE)
    memory.add(id)
    answer(reply, 200, OK)
  })
}

const app = Fastify({
  bodyLimit: MAX_BODY,
  logger: false,
  exposeHeadRoutes: false,
  keepAliveTimeout: 60_000,
  requestTimeout: 30_000
})
// The signature covers the bytes, so no body is parsed, whatever its content type.
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
app.post(WEBHOOK_PATH, receive)
await app.listen({ host: '127.0.0.1', port: Number(PORT), backlog: 4096 })
