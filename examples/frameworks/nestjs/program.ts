// NestJS: a microservice over Kafka answers requests (a reply topic, correlated by headers) and handles events.
//
// Run as `program.js BOOTSTRAP PREFIX`; it creates topics of that prefix.
import 'reflect-metadata'
import { Controller, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ClientKafka, EventPattern, MessagePattern, MicroserviceOptions } from '@nestjs/microservices'
import { Payload, Transport } from '@nestjs/microservices'
import { Kafka, logLevel } from 'kafkajs'
import { firstValueFrom, timeout } from 'rxjs'

const COUNT = 20
const LIMIT_MS = 60_000
const [bootstrap, prefix] = process.argv.slice(2)
const orders = `${prefix}-orders`
const notes = `${prefix}-notes`

const noted: number[] = []

@Controller()
class Biller {
  @MessagePattern(orders)
  bill(@Payload() order: { number: number }) {
    return { total: order.number * 10 }
  }

  @EventPattern(notes)
  note(@Payload() note: { number: number }) {
    noted.push(note.number)
  }
}

@Module({ controllers: [Biller] })
class Application {}

const client = { clientId: prefix, brokers: [bootstrap], logLevel: logLevel.ERROR }

function options(groupId: string) {
  return { client, consumer: { groupId }, subscribe: { fromBeginning: true } }
}

async function createTopics() {
  const admin = new Kafka(client).admin()
  await admin.connect()
  await admin.createTopics({
    waitForLeaders: true,
    topics: [orders, `${orders}.reply`, notes].map((topic) => ({ topic, numPartitions: 2, replicationFactor: 1 })),
  })
  await admin.disconnect()
}

async function main() {
  await createTopics()
  const service = await NestFactory.createMicroservice<MicroserviceOptions>(Application, {
    transport: Transport.KAFKA,
    options: options(`${prefix}-billers`),
    logger: ['error'],
  })
  await service.listen()
  const asking = new ClientKafka(options(`${prefix}-asking`))
  asking.subscribeToResponseOf(orders)
  await asking.connect()

  for (let number = 0; number < COUNT; number++) {
    const answer = await firstValueFrom(asking.send(orders, { number }).pipe(timeout(LIMIT_MS)))
    if (answer.total !== number * 10) throw new Error(`order ${number} was answered ${JSON.stringify(answer)}`)
    await firstValueFrom(asking.emit(notes, { number }))
  }
  const end = Date.now() + LIMIT_MS
  while (noted.length < COUNT) {
    if (Date.now() > end) throw new Error(`noted: ${noted}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  noted.sort((left, right) => left - right)
  if (noted.some((number, index) => number !== index)) throw new Error(`noted: ${noted}`)
  await asking.close()
  await service.close()
}

main().then(
  () => console.log('ok'),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
