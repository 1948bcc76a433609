//! The rdkafka crate: consume, transform and produce in transactions that carry the group's offsets.
//!
//! Run as `program BOOTSTRAP PREFIX`; it creates topics of that prefix.

use std::collections::HashMap;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};

const COUNT: usize = 30;
const LIMIT: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error>;

fn settings(bootstrap: &str, more: &[(&str, &str)]) -> ClientConfig {
    let mut made = ClientConfig::new();
    made.set("bootstrap.servers", bootstrap);
    for (key, value) in more {
        made.set(*key, *value);
    }
    made
}

fn consumer(bootstrap: &str, group: &str, topic: &str) -> Result<StreamConsumer, Failure> {
    let made: StreamConsumer = settings(
        bootstrap,
        &[
            ("group.id", group),
            ("group.protocol", "consumer"),
            ("auto.offset.reset", "earliest"),
            ("enable.auto.commit", "false"),
            ("isolation.level", "read_committed"),
        ],
    )
    .create()?;
    made.subscribe(&[topic])?;
    Ok(made)
}

async fn bill(bootstrap: &str, prefix: &str) -> Result<(), Failure> {
    let orders = consumer(bootstrap, &format!("{prefix}-billers"), &format!("{prefix}-orders"))?;
    let id = format!("{prefix}-biller");
    let producer: FutureProducer = settings(bootstrap, &[("transactional.id", &id)]).create()?;
    producer.init_transactions(LIMIT)?;
    let bills = format!("{prefix}-bills");
    for number in 0..COUNT {
        let order = tokio::time::timeout(LIMIT, orders.recv()).await??;
        let text = format!(
            "bill of {}",
            String::from_utf8_lossy(order.payload().unwrap_or_default())
        );
        let record = || FutureRecord::<(), str>::to(&bills).payload(&text);
        if number % 5 == 0 {
            producer.begin_transaction()?;
            producer.send(record(), LIMIT).await.map_err(|(error, _)| error)?;
            producer.abort_transaction(LIMIT)?;
        }
        producer.begin_transaction()?;
        producer.send(record(), LIMIT).await.map_err(|(error, _)| error)?;
        let mut offsets = TopicPartitionList::new();
        offsets.add_partition_offset(order.topic(), order.partition(), Offset::Offset(order.offset() + 1))?;
        let member = orders.group_metadata().ok_or("the consumer is in no group")?;
        producer.send_offsets_to_transaction(&offsets, &member, LIMIT)?;
        producer.commit_transaction(LIMIT)?;
    }
    Ok(())
}

async fn run(bootstrap: &str, prefix: &str) -> Result<(), Failure> {
    let (orders, bills) = (format!("{prefix}-orders"), format!("{prefix}-bills"));
    let admin: AdminClient<_> = settings(bootstrap, &[]).create()?;
    let topics = [&orders, &bills].map(|name| NewTopic::new(name, 2, TopicReplication::Fixed(1)));
    for created in admin.create_topics(&topics, &AdminOptions::new()).await? {
        created.map_err(|(topic, code)| format!("{topic} was not created: {code}"))?;
    }
    let producer: FutureProducer = settings(bootstrap, &[("compression.type", "lz4")]).create()?;
    for number in 0..COUNT {
        let text = format!("order {number}");
        let record = FutureRecord::to(&orders).key(&text).payload(&text);
        producer.send(record, LIMIT).await.map_err(|(error, _)| error)?;
    }
    bill(bootstrap, prefix).await?;

    let reader = consumer(bootstrap, &format!("{prefix}-readers"), &bills)?;
    let mut times: HashMap<String, usize> = HashMap::new();
    for _ in 0..COUNT {
        let bill = tokio::time::timeout(LIMIT, reader.recv()).await??;
        *times
            .entry(String::from_utf8(bill.payload().unwrap_or_default().to_vec())?)
            .or_default() += 1;
    }
    if (0..COUNT).any(|number| times.get(&format!("bill of order {number}")) != Some(&1)) {
        return Err(format!("bills: {times:?}").into());
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().collect();
    run(&words[1], &words[2]).await?;
    println!("ok");
    Ok(())
}
