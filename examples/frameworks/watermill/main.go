// Watermill: a router's handler turns messages of one topic into those of another; a poison queue keeps what fails.
//
// Run as `program BOOTSTRAP PREFIX`; it creates topics of that prefix.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
)

const (
	count  = 30
	spoilt = 7
	limit  = 90 * time.Second
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func subscriber(bootstrap, group string) *kafka.Subscriber {
	settings := kafka.DefaultSaramaSubscriberConfig()
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	made, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: []string{bootstrap}, Unmarshaler: kafka.DefaultMarshaler{}, ConsumerGroup: group,
		OverwriteSaramaConfig:  settings,
		InitializeTopicDetails: &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1},
	}, watermill.NopLogger{})
	must(err)
	return made
}

func collect(ctx context.Context, from *kafka.Subscriber, topic string, wanted int) map[string]bool {
	must(from.SubscribeInitialize(topic))
	messages, err := from.Subscribe(ctx, topic)
	must(err)
	seen := map[string]bool{}
	for len(seen) < wanted {
		select {
		case each := <-messages:
			seen[string(each.Payload)] = true
			each.Ack()
		case <-ctx.Done():
			log.Fatalf("%d of %d messages of %s came", len(seen), wanted, topic)
		}
	}
	return seen
}

func main() {
	bootstrap, prefix := os.Args[1], os.Args[2]
	orders, bills, poison := prefix+"-orders", prefix+"-bills", prefix+"-poison"
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	publisher, err := kafka.NewPublisher(
		kafka.PublisherConfig{Brokers: []string{bootstrap}, Marshaler: kafka.DefaultMarshaler{}}, watermill.NopLogger{})
	must(err)

	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	must(err)
	queue, err := middleware.PoisonQueue(publisher, poison)
	must(err)
	router.AddMiddleware(queue, middleware.Retry{MaxRetries: 2, InitialInterval: time.Millisecond}.Middleware)
	input := subscriber(bootstrap, prefix+"-billers")
	must(input.SubscribeInitialize(orders))
	router.AddHandler("bill", orders, input, bills, publisher, func(order *message.Message) ([]*message.Message, error) {
		number, err := strconv.Atoi(string(order.Payload))
		if err != nil || number == spoilt {
			return nil, errors.New("an order that nobody can bill")
		}
		return message.Messages{message.NewMessage(watermill.NewUUID(), []byte(strconv.Itoa(number*10)))}, nil
	})
	go func() { must(router.Run(ctx)) }()
	<-router.Running()

	for number := range count {
		must(publisher.Publish(orders, message.NewMessage(watermill.NewUUID(), []byte(strconv.Itoa(number)))))
	}
	billed := collect(ctx, subscriber(bootstrap, prefix+"-readers"), bills, count-1)
	for number := range count {
		if billed[strconv.Itoa(number*10)] == (number == spoilt) {
			log.Fatalf("billed: %v", billed)
		}
	}
	failed := collect(ctx, subscriber(bootstrap, prefix+"-doctors"), poison, 1)
	if !failed[strconv.Itoa(spoilt)] {
		log.Fatalf("in the poison queue: %v", failed)
	}
	must(router.Close())
	fmt.Println("ok")
}
