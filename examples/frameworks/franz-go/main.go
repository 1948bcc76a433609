// franz-go: consume, transform, produce in transactions of a group (GroupTransactSession), one of them aborted.
//
// Run as `program BOOTSTRAP PREFIX`; it creates topics of that prefix.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	count      = 40
	partitions = 3
	limit      = 90 * time.Second
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(options...)
	must(err)
	return made
}

// bill processes orders until as many are committed; the first transaction is aborted, so its orders come again.
func bill(ctx context.Context, bootstrap, prefix string) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap), kgo.TransactionalID(prefix+"-biller"), kgo.ConsumerGroup(prefix+"-billers"),
		kgo.ConsumeTopics(prefix+"-orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.DefaultProduceTopic(prefix+"-bills"),
		kgo.RequireStableFetchOffsets(),
	)
	must(err)
	defer session.Close()
	aborted := false
	for done := 0; done < count; {
		fetches := session.PollFetches(ctx)
		must(fetches.Err0())
		must(session.Begin())
		fetches.EachRecord(func(order *kgo.Record) {
			session.Produce(ctx, &kgo.Record{Key: order.Key, Value: append([]byte("bill of "), order.Value...)}, nil)
		})
		committed, err := session.End(ctx, kgo.TransactionEndTry(aborted))
		must(err)
		if committed {
			done += fetches.NumRecords()
		}
		aborted = aborted || fetches.NumRecords() > 0
	}
}

func main() {
	bootstrap, prefix := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	producer := client(kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(prefix+"-orders"))
	defer producer.Close()
	for _, topic := range []string{prefix + "-orders", prefix + "-bills"} {
		_, err := kadm.NewClient(producer).CreateTopic(ctx, partitions, 1, nil, topic)
		must(err)
	}
	for number := range count {
		must(producer.ProduceSync(ctx, &kgo.Record{Value: fmt.Appendf(nil, "order %d", number)}).FirstErr())
	}
	bill(ctx, bootstrap, prefix)

	reader := client(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(prefix+"-bills"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer reader.Close()
	times := map[string]int{}
	for records := 0; records < count; {
		fetches := reader.PollFetches(ctx)
		must(fetches.Err0())
		fetches.EachRecord(func(record *kgo.Record) { times[string(record.Value)]++; records++ })
	}
	for number := range count {
		if times[fmt.Sprintf("bill of order %d", number)] != 1 {
			log.Fatalf("bills: %v", times)
		}
	}
	fmt.Println("ok")
}
