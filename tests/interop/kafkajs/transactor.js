// A transactional producer of kafkajs: JSON lines as tests/interop/drivers/transactor_lines.py says.
'use strict'

const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const BATCH = 25
const LIMIT_MS = 300000
const [bootstrap, transactionalId] = process.argv.slice(2)
const kafka = new Kafka({
  clientId: 'interop',
  brokers: [bootstrap],
  logLevel: logLevel.NOTHING,
  retry: { retries: 8, initialRetryTime: 50, maxRetryTime: 500 },
})
let producer = null
let transaction = null

// The producer of the transactional id; it is taken with the first transaction, and what was open under it is then aborted.
const producing = async () => {
  if (producer === null) {
    const made = kafka.producer({ transactionalId, maxInFlightRequests: 1, idempotent: true })
    await made.connect()
    producer = made
  }
  return producer
}

const operations = {
  begin: async () => {
    transaction = await (await producing()).transaction()
  },
  send: ({ topic, values }) => transaction.send({ topic, messages: values.map(value => ({ value, partition: 0 })) }).then(() => null),
  end: ({ commit }) => (commit ? transaction.commit() : transaction.abort()),
  transform: async ({ group, source, target, end }) => {
    const deadline = Date.now() + LIMIT_MS
    let transactions = 0
    while (Date.now() < deadline) {
      try {
        // An empty transaction: kafkajs asks where the group stands without `require_stable`, so nothing may be open.
        await (await (await producing()).transaction()).abort()
        transactions += await transformSome(group, source, target, end)
        return transactions
      } catch (error) {
        process.stderr.write(`${error.name}: ${error.message}\n`)
        const given = producer
        producer = null
        if (given !== null) await given.disconnect().catch(() => {})
      }
    }
    throw new Error(`${transactions} transactions in time`)
  },
}

const committedBy = async (groupId, topic) => {
  const admin = kafka.admin()
  await admin.connect()
  try {
    const [found] = await admin.fetchOffsets({ groupId, topics: [topic] })
    return Math.max(Number(found.partitions[0].offset), 0)
  } finally {
    await admin.disconnect()
  }
}

// Transforms as a member of the group until that stands at `end`, or something goes wrong.
const transformSome = async (groupId, source, target, end) => {
  let position = await committedBy(groupId, source)
  let transactions = 0
  if (position >= end) return transactions
  const consumer = kafka.consumer({ groupId, sessionTimeout: 3000, heartbeatInterval: 500, maxWaitTimeInMs: 100, readUncommitted: false, retry: { retries: 0 } })
  const transformOne = async messages => {
    const running = await producer.transaction()
    await running.send({ topic: target, messages: messages.map(each => ({ value: `${each.value}!`, partition: 0 })) })
    const next = Number(messages[messages.length - 1].offset) + 1
    await running.sendOffsets({ consumerGroupId: groupId, topics: [{ topic: source, partitions: [{ partition: 0, offset: String(next) }] }] })
    await running.commit()
    position = next
    transactions += 1
  }
  try {
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
      const eachBatch = async ({ batch, resolveOffset, heartbeat, isRunning, isStale }) => {
        for (let at = 0; at < batch.messages.length && isRunning() && !isStale(); at += BATCH) {
          const messages = batch.messages.slice(at, at + BATCH)
          if (Number(messages[0].offset) !== position) throw new Error(`at ${position} was read: ${messages[0].offset}`)
          try {
            await transformOne(messages)
          } catch (error) {
            reject(error)
            throw error
          }
          resolveOffset(messages[messages.length - 1].offset)
          if (position >= end) return resolve()
          await heartbeat()
        }
      }
      consumer
        .connect()
        .then(() => consumer.subscribe({ topics: [source], fromBeginning: true }))
        .then(() => consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch }))
        .catch(reject)
    })
  } finally {
    await consumer.disconnect().catch(() => {})
  }
  return transactions
}

const main = async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { do: name, ...request } = JSON.parse(line)
    let answer
    try {
      const result = await operations[name](request)
      answer = { result: result === undefined ? null : result }
    } catch (error) {
      answer = { error: { code: Number.isInteger(error.code) ? error.code : -1, text: `${error.name}: ${error.message}` } }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
  process.exit(0)
}

main()
