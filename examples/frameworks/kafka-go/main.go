// kafka-go: a writer, and readers of a group that share three partitions and commit; a second group member takes over.
//
// Run as `program BOOTSTRAP PREFIX`; it creates topics of that prefix.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sort"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	count      = 60
	partitions = 3
	limit      = 90 * time.Second
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func reader(bootstrap, topic, group string) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{bootstrap}, GroupID: group, Topic: topic, StartOffset: kafka.FirstOffset,
		MaxWait: 500 * time.Millisecond,
	})
}

func read(ctx context.Context, from *kafka.Reader, wanted int) []string {
	var values []string
	for len(values) < wanted {
		message, err := from.FetchMessage(ctx)
		must(err)
		values = append(values, string(message.Value))
		must(from.CommitMessages(ctx, message))
	}
	return values
}

func write(ctx context.Context, bootstrap, topic string, from int) {
	writer := &kafka.Writer{
		Addr: kafka.TCP(bootstrap), Topic: topic, Balancer: &kafka.RoundRobin{}, RequiredAcks: kafka.RequireAll,
		Compression: kafka.Zstd, BatchTimeout: 5 * time.Millisecond,
	}
	var messages []kafka.Message
	for number := from; number < from+count; number++ {
		messages = append(messages, kafka.Message{
			Value:   []byte(fmt.Sprintf("%03d", number)),
			Headers: []kafka.Header{{Key: "number", Value: []byte{byte(number)}}},
		})
	}
	must(writer.WriteMessages(ctx, messages...))
	must(writer.Close())
}

func check(values []string, from int) {
	sort.Strings(values)
	for index, value := range values {
		if value != fmt.Sprintf("%03d", from+index) {
			log.Fatalf("read %v from %d", values, from)
		}
	}
}

func main() {
	bootstrap, prefix := os.Args[1], os.Args[2]
	topic, group := prefix+"-orders", prefix+"-readers"
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	client := &kafka.Client{Addr: kafka.TCP(bootstrap)}
	created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}},
	})
	must(err)
	must(created.Errors[topic])

	write(ctx, bootstrap, topic, 0)
	first := reader(bootstrap, topic, group)
	check(read(ctx, first, count), 0)
	must(first.Close())

	// The next member goes on from the commits of the first.
	write(ctx, bootstrap, topic, count)
	second := reader(bootstrap, topic, group)
	check(read(ctx, second, count), count)
	must(second.Close())
	fmt.Println("ok")
}
