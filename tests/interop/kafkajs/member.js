// A group member of kafkajs: options and events as tests/interop/drivers/member_lines.py says; its assignor is kafkajs's own.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, groupId, topic] = process.argv.slice(2)
const say = event => process.stdout.write(JSON.stringify(event) + '\n')

const main = async () => {
  const kafka = new Kafka({ clientId: 'interop', brokers: [bootstrap], logLevel: logLevel.NOTHING })
  const consumer = kafka.consumer({ groupId, sessionTimeout: 3000, heartbeatInterval: 500, maxWaitTimeInMs: 100 })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
    say({ event: 'assigned', partitions: payload.memberAssignment[topic] || [] })
  )
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, resolveOffset, commitOffsetsIfNecessary, uncommittedOffsets }) => {
      const records = batch.messages.map(each => [batch.partition, Number(each.offset), each.value.toString()])
      if (records.length === 0) return
      resolveOffset(batch.lastOffset())
      // Without offsets it commits only what an interval has passed for: a rebalance would bring the rest again.
      await commitOffsetsIfNecessary(uncommittedOffsets())
      say({ event: 'records', records })
    },
  })
  await new Promise(resolve => process.stdin.once('data', resolve).once('end', resolve))
  await consumer.disconnect()
  say({ event: 'left' })
  process.exit(0)
}

main()
