// A worker with kafkajs as it is: what it cannot work on it gives back to its group's retry topic.
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, topic, group, count] = process.argv.slice(2)
const retryTopic = `${topic}.${group}.retry`
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR })
const consumer = kafka.consumer({ groupId: group })
const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })

// Stands in for work: a value says how often it fails.
const work = (value, attempt) => {
  if (attempt < Number(value)) throw new Error(`no answer at attempt ${attempt}`)
}

const giveBack = (from, partition, message, reason) => {
  const headers = { ...message.headers, 'odradek.retry.reason': reason }
  if (from !== retryTopic) headers['odradek.retry.origin'] = `${from}/${partition}/${message.offset}`
  return producer.send({ topic: retryTopic, acks: -1, messages: [{ key: message.key, value: message.value, headers, partition }] })
}

const run = async () => {
  let left = Number(count)
  await producer.connect()
  await consumer.connect()
  await consumer.subscribe({ topics: [topic, retryTopic], fromBeginning: true })
  await consumer.run({
    // Offsets are committed once this has returned: a record that was not taken back is read again.
    eachMessage: async ({ topic: from, partition, message }) => {
      const attempt = Number(message.headers['odradek.retry.attempt'] ?? 0)
      try {
        work(message.value.toString(), attempt)
      } catch (error) {
        return giveBack(from, partition, message, error.message)
      }
      console.log(`done ${message.value} attempt ${attempt}`)
      left -= 1
      if (left === 0) setImmediate(end)
    },
  })
}

const end = async () => {
  await consumer.disconnect()
  await producer.disconnect()
}

run()
