// Checks of a delivery: complete headers, valid signature, fresh timestamp, new id.
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'

const SIGNATURE = /^sha256=[0-9a-f]{64}$/
const REMEMBER_FOR_MS = 24 * 3600 * 1000

export class Checks {
  #secret
  #tolerance

  constructor(secret, toleranceSeconds) {
    this.#secret = createSecretKey(Buffer.from(secret))
    this.#tolerance = toleranceSeconds
  }

  isGenuine(signature, timestamp, body) {
    if (signature === undefined || !SIGNATURE.test(signature)) return false
    const expected = createHmac('sha256', this.#secret).update(`${timestamp}.`).update(body).digest()
    return timingSafeEqual(expected, Buffer.from(signature.slice(7), 'hex'))
  }

  isFresh(timestamp) {
    const age = Math.floor(Date.now() / 1000) - Number(timestamp)
    return age <= this.#tolerance && age >= -this.#tolerance // false for what is no number
  }
}

// The ids published by this process; a Map keeps insertion order.
export class Memory {
  #seen = new Map()

  constructor() {
    setInterval(() => this.#forget(Date.now() - REMEMBER_FOR_MS), 60_000).unref()
  }

  has(id) {
    return this.#seen.has(id)
  }

  add(id) {
    this.#seen.set(id, Date.now())
  }

  #forget(oldest) {
    for (const [id, at] of this.#seen) {
      if (at >= oldest) break
      this.#seen.delete(id)
    }
  }
}
