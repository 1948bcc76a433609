// sarama: an asynchronous idempotent producer with transactions, and a consumer group whose offsets they carry.
//
// Run as `program BOOTSTRAP PREFIX`; it creates topics of that prefix.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const (
	count      = 30
	partitions = 2
	limit      = 90 * time.Second
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func settings() *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.V4_0_0_0
	made.Producer.Return.Successes = true
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.IsolationLevel = sarama.ReadCommitted
	return made
}

func transactional(bootstrap, id string) sarama.SyncProducer {
	made := settings()
	made.Producer.Idempotent, made.Net.MaxOpenRequests = true, 1
	made.Producer.RequiredAcks, made.Producer.Transaction.ID = sarama.WaitForAll, id
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, made)
	must(err)
	return producer
}

// biller consumes orders of a group and produces bills, an order a transaction. The claims of the partitions run side
// by side, and a producer has one transaction at a time: the lock is for that.
type biller struct {
	turn         sync.Mutex
	producer     sarama.SyncProducer
	group, bills string
	done         chan struct{}
}

func (*biller) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*biller) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (b *biller) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case order, open := <-claim.Messages():
			if !open {
				return nil
			}
			b.bill(order)
			b.done <- struct{}{}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (b *biller) bill(order *sarama.ConsumerMessage) {
	b.turn.Lock()
	defer b.turn.Unlock()
	must(b.producer.BeginTxn())
	text := sarama.StringEncoder("bill of " + string(order.Value))
	_, _, err := b.producer.SendMessage(&sarama.ProducerMessage{Topic: b.bills, Value: text})
	must(err)
	must(b.producer.AddMessageToTxn(order, b.group, nil))
	must(b.producer.CommitTxn())
}

func bill(ctx context.Context, bootstrap, prefix string) {
	made := settings()
	made.Consumer.Offsets.AutoCommit.Enable = false
	made.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRoundRobin()}
	group, err := sarama.NewConsumerGroup([]string{bootstrap}, prefix+"-billers", made)
	must(err)
	producer := transactional(bootstrap, prefix+"-biller")
	handler := &biller{
		producer: producer, group: prefix + "-billers", bills: prefix + "-bills", done: make(chan struct{}),
	}
	inner, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- group.Consume(inner, []string{prefix + "-orders"}, handler) }()
	for range count {
		select {
		case <-handler.done:
		case <-ctx.Done():
			log.Fatal("not all orders came")
		}
	}
	stop()
	must(<-ended)
	must(group.Close())
	must(producer.Close())
}

func main() {
	bootstrap, prefix := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	admin, err := sarama.NewClusterAdmin([]string{bootstrap}, settings())
	must(err)
	defer admin.Close()
	for topic, count := range map[string]int32{prefix + "-orders": partitions, prefix + "-bills": 1} {
		must(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: count, ReplicationFactor: 1}, false))
	}
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, settings())
	must(err)
	for number := range count {
		text := sarama.StringEncoder(fmt.Sprintf("order %d", number))
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: prefix + "-orders", Value: text})
		must(err)
	}
	must(producer.Close())
	bill(ctx, bootstrap, prefix)

	consumer, err := sarama.NewConsumer([]string{bootstrap}, settings())
	must(err)
	bills, err := consumer.ConsumePartition(prefix+"-bills", 0, sarama.OffsetOldest)
	must(err)
	times := map[string]int{}
	for range count {
		select {
		case each := <-bills.Messages():
			times[string(each.Value)]++
		case <-ctx.Done():
			log.Fatalf("bills: %v", times)
		}
	}
	for number := range count {
		if times[fmt.Sprintf("bill of order %d", number)] != 1 {
			log.Fatalf("bills: %v", times)
		}
	}
	must(bills.Close())
	must(consumer.Close())
	fmt.Println("ok")
}
