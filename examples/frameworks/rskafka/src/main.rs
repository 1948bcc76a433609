//! rskafka, a client in pure Rust without groups: batches of every codec, read back in order; old records deleted.
//!
//! Run as `program BOOTSTRAP PREFIX`; it creates topics of that prefix.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeZone, Utc};
use futures::StreamExt;
use rskafka::client::consumer::{StartOffset, StreamConsumerBuilder};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;

const EACH: i64 = 10;
const CODECS: [Compression; 5] = [
    Compression::NoCompression,
    Compression::Gzip,
    Compression::Lz4,
    Compression::Snappy,
    Compression::Zstd,
];
const LIMIT: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error>;

fn record(number: i64) -> Record {
    Record {
        key: Some(format!("key {number}").into_bytes()),
        value: (number % 3 != 0).then(|| format!("order {number}").into_bytes()),
        headers: BTreeMap::from([("number".to_owned(), number.to_be_bytes().to_vec())]),
        timestamp: Utc.timestamp_millis_opt(1_700_000_000_000 + number).unwrap(),
    }
}

async fn check(partition: Arc<PartitionClient>, from: i64, end: i64) -> Result<(), Failure> {
    let mut stream = StreamConsumerBuilder::new(partition, StartOffset::Earliest)
        .with_max_wait_ms(200)
        .build();
    for number in from..end {
        let (found, _high_watermark) = tokio::time::timeout(LIMIT, stream.next())
            .await?
            .ok_or("the stream ended")??;
        if found.offset != number || found.record != record(number) {
            return Err(format!("at {number}: {found:?}").into());
        }
    }
    Ok(())
}

async fn run(bootstrap: &str, topic: &str) -> Result<(), Failure> {
    let client = ClientBuilder::new(vec![bootstrap.to_owned()]).build().await?;
    client.controller_client()?.create_topic(topic, 1, 1, 5_000).await?;
    let partition = Arc::new(client.partition_client(topic, 0, UnknownTopicHandling::Retry).await?);
    let end = EACH * CODECS.len() as i64;
    for (numbers, codec) in (0..end).step_by(EACH as usize).zip(CODECS) {
        let produced = partition
            .produce((numbers..numbers + EACH).map(record).collect(), codec)
            .await?;
        if produced != (numbers..numbers + EACH).collect::<Vec<_>>() {
            return Err(format!("{codec:?} was given the offsets {produced:?}").into());
        }
    }
    check(Arc::clone(&partition), 0, end).await?;
    partition.delete_records(EACH, 5_000).await?;
    if partition.get_offset(OffsetAt::Earliest).await? != EACH {
        return Err("the old records are still there".into());
    }
    check(partition, EACH, end).await
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().collect();
    run(&words[1], &format!("{}-orders", words[2])).await?;
    println!("ok");
    Ok(())
}
