// Driver of kafkajs: JSON lines as tests/interop/drivers/json_lines.py says. It reads in groups only: each read is a group of its own.
'use strict'

const readline = require('readline')
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')
const lz4 = require('lz4js')
const xxhash = require('lz4js/xxh32.js')
const snappy = require('snappyjs')
const { ZstdCodec } = require('zstd-codec')

const kafka = new Kafka({
  clientId: 'interop',
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { retries: 2, initialRetryTime: 50 },
})
const codecOf = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' }
const toBytes = text => (text === null ? null : Buffer.from(text, 'base64'))
const toText = bytes => (bytes === null ? null : bytes.toString('base64'))

// kafkajs comes with gzip alone; others are added by who needs them, as its documentation shows.
const useCodec = (type, compress, decompress) => {
  CompressionCodecs[type] = () => ({
    compress: async encoder => Buffer.from(compress(encoder.buffer)),
    decompress: async buffer => Buffer.from(decompress(buffer)),
  })
}

// Kafka takes frames of independent blocks only; lz4js makes them by the block, but has no such frames.
const lz4Frame = bytes => {
  const magic = Buffer.from([0x04, 0x22, 0x4d, 0x18])
  const descriptor = Buffer.from([0x60, 0x70])
  const parts = [magic, descriptor, Buffer.from([(xxhash.hash(0, descriptor, 0, 2) >> 8) & 0xff])]
  for (let start = 0; start < bytes.length; start += 4 << 20) {
    const length = Math.min(bytes.length - start, 4 << 20)
    const block = lz4.makeBuffer(lz4.compressBound(length))
    const packed = lz4.compressBlock(bytes, block, start, length, new Uint32Array(1 << 16))
    const size = Buffer.alloc(4)
    const isPacked = packed > 0 && packed < length
    size.writeUInt32LE(isPacked ? packed : (0x80000000 | length) >>> 0)
    parts.push(size, isPacked ? Buffer.from(block.slice(0, packed)) : bytes.subarray(start, start + length))
  }
  return Buffer.concat([...parts, Buffer.alloc(4)])
}

// By the block as well: lz4js looks for a block's checksum, which aiokafka sends, on the wrong side of the block.
const lz4Bytes = bytes => {
  const flags = bytes[4]
  const target = lz4.makeBuffer(lz4.decompressBound(bytes))
  let start = flags & 0x08 ? 15 : 7
  let end = 0
  for (let size = bytes.readUInt32LE(start); size !== 0; size = bytes.readUInt32LE(start)) {
    const length = size & 0x7fffffff
    const block = start + 4
    if (size === length) {
      end = lz4.decompressBlock(bytes, target, block, length, end)
    } else {
      target.set(bytes.subarray(block, block + length), end)
      end += length
    }
    start = block + length + (flags & 0x10 ? 4 : 0)
  }
  return target.subarray(0, end)
}

// The framing of Java's clients: a header of 16 bytes, then blocks, each behind its length; other clients send one bare block.
const snappyBytes = bytes => {
  if (bytes.subarray(0, 8).toString('latin1') !== '\x82SNAPPY\0') return snappy.uncompress(bytes)
  const parts = []
  for (let start = 16; start < bytes.length; ) {
    const end = start + 4 + bytes.readInt32BE(start)
    parts.push(snappy.uncompress(bytes.subarray(start + 4, end)))
    start = end
  }
  return Buffer.concat(parts)
}

const useCodecs = () =>
  new Promise(resolve =>
    ZstdCodec.run(zstd => {
      const simple = new zstd.Simple()
      const streaming = new zstd.Streaming() // not every client tells how much there will be
      useCodec(CompressionTypes.ZSTD, bytes => simple.compress(bytes, 3), bytes => streaming.decompress(bytes))
      useCodec(CompressionTypes.LZ4, lz4Frame, lz4Bytes)
      useCodec(CompressionTypes.Snappy, bytes => snappy.compress(bytes), snappyBytes)
      resolve()
    })
  )

const headersOf = pairs => {
  const headers = {}
  for (const [name, value] of pairs) {
    headers[name] = name in headers ? [].concat(headers[name], toBytes(value)) : toBytes(value)
  }
  return headers
}

const withClient = async (client, operation) => {
  await client.connect()
  try {
    return await operation(client)
  } finally {
    await client.disconnect()
  }
}
const admin = operation => withClient(kafka.admin(), operation)

const produce = ({ topic, records, compression, acks, idempotent }) =>
  withClient(kafka.producer({ idempotent, allowAutoTopicCreation: false }), async producer => {
    const metadata = await producer.send({
      topic,
      acks: { 0: 0, 1: 1, all: -1 }[acks],
      compression: CompressionTypes[codecOf[compression]],
      messages: records.map(record => ({
        partition: 0,
        key: toBytes(record.key),
        value: toBytes(record.value),
        headers: headersOf(record.headers),
        timestamp: String(record.timestamp),
      })),
    })
    const first = metadata.length && metadata[0] ? Number(metadata[0].baseOffset) : null
    return records.map((_, index) => (first === null ? null : first + index))
  })

const headerPairs = headers =>
  Object.entries(headers).flatMap(([name, values]) => [].concat(values).map(value => [name, toText(value)]))

// Where the consumer shall seek to: kafkajs itself knows the beginning and the end.
const startOf = async (topic, position) => {
  if (typeof position === 'string') return null
  if ('offset' in position) return String(position.offset)
  return admin(async client => (await client.fetchTopicOffsetsByTimestamp(topic, position.timestamp))[0].offset)
}

let readsCount = 0

const consume = async ({ topic, position, count, isolation }) => {
  const start = await startOf(topic, position)
  const consumer = kafka.consumer({
    groupId: `read-${process.pid}-${(readsCount += 1)}`,
    readUncommitted: isolation === 'read_uncommitted',
    maxWaitTimeInMs: 100,
  })
  const records = []
  return withClient(consumer, async () => {
    await consumer.subscribe({ topics: [topic], fromBeginning: position !== 'end' })
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
      let told = position !== 'end'
      consumer.on(consumer.events.FETCH, () => {
        if (!told) process.stdout.write(JSON.stringify({ event: 'positioned' }) + '\n')
        told = true
      })
      const eachMessage = async ({ message: { offset, timestamp, key, value, headers } }) => {
        const [at, time] = [Number(offset), Number(timestamp)]
        records.push({ offset: at, timestamp: time, key: toText(key), value: toText(value), headers: headerPairs(headers) })
        if (records.length === count) resolve()
      }
      consumer.run({ autoCommit: false, eachMessage }).catch(reject)
      if (start !== null) consumer.seek({ topic, partition: 0, offset: start })
    })
    return records.slice(0, count)
  })
}

const offsets = ({ topic, at }) =>
  admin(async client => {
    if (typeof at === 'number') {
      return Number((await client.fetchTopicOffsetsByTimestamp(topic, at))[0].offset)
    }
    const [found] = await client.fetchTopicOffsets(topic)
    return Number(at === 'earliest' ? found.low : found.high)
  })

const resourceOf = topic => ({ type: ConfigResourceTypes.TOPIC, name: topic })

const operations = {
  produce,
  consume,
  offsets,
  create_topic: ({ topic, partitions, configs }) =>
    admin(client =>
      client.createTopics({
        topics: [
          {
            topic,
            numPartitions: partitions,
            replicationFactor: 1,
            configEntries: Object.entries(configs).map(([name, value]) => ({ name, value })),
          },
        ],
      })
    ).then(created => {
      // For a topic that exists kafkajs answers `false` instead of raising.
      if (!created) throw Object.assign(new Error('it exists'), { code: 36 })
    }),
  list_topics: () => admin(client => client.listTopics()),
  describe_topic: ({ topic }) =>
    admin(async client => (await client.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length),
  delete_topic: ({ topic }) => admin(client => client.deleteTopics({ topics: [topic] })),
  create_partitions: ({ topic, partitions }) =>
    admin(client => client.createPartitions({ topicPartitions: [{ topic, count: partitions }] })),
  topic_configs: ({ topic }) =>
    admin(async client => {
      const answer = await client.describeConfigs({ includeSynonyms: false, resources: [resourceOf(topic)] })
      return Object.fromEntries(answer.resources[0].configEntries.map(entry => [entry.configName, entry.configValue]))
    }),
  set_topic_config: ({ topic, key, value }) =>
    admin(client =>
      client.alterConfigs({
        validateOnly: false,
        resources: [{ ...resourceOf(topic), configEntries: [{ name: key, value }] }],
      })
    ),
  delete_records: ({ topic, before }) =>
    admin(async client => {
      await client.fetchTopicOffsets(topic) // kafkajs deletes only from topics whose leaders it already knows
      await client.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(before) }] })
    }),
  describe_cluster: () =>
    admin(async client => {
      const cluster = await client.describeCluster()
      return { brokers: cluster.brokers.map(broker => broker.nodeId), controller: cluster.controller }
    }),
}

const codeOf = error => {
  for (const each of [error, error.cause, ...(error.errors || [])]) {
    if (each && Number.isInteger(each.code)) return each.code
  }
  return -1
}

const main = async () => {
  await useCodecs()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { do: name, ...request } = JSON.parse(line)
    let answer
    try {
      const result = await operations[name](request)
      answer = { result: result === undefined ? null : result }
    } catch (error) {
      answer = { error: { code: codeOf(error), text: `${error.name}: ${error.message}` } }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
}

main()
