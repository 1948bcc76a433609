package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	recordsPerTransaction = 25
	transformLimit        = 300 * time.Second
	pause                 = 20 * time.Millisecond
)

// transactor is a transactional producer: operations as tests/interop/drivers/transactor_lines.py says.
type transactor struct {
	id     string
	client *kgo.Client
}

func (t *transactor) run(r request) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	switch r.Do {
	case "begin":
		return nil, t.begin(ctx)
	case "send":
		return nil, t.client.ProduceSync(ctx, recordsOf(r.Topic, r.Values)...).FirstErr()
	case "end":
		return nil, t.client.EndTransaction(ctx, kgo.TransactionEndTry(r.Commit))
	case "transform":
		return t.transform(r)
	}
	return nil, fmt.Errorf("unknown operation %s", r.Do)
}

func (t *transactor) begin(ctx context.Context) error {
	if t.client == nil {
		client, err := newClient(kgo.TransactionalID(t.id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			return err
		}
		if err := takeID(ctx, client); err != nil {
			client.Close()
			return err
		}
		t.client = client
	}
	return t.client.BeginTransaction()
}

// takeID takes the transactional id; franz-go asks once, and a broker says "not yet" while it aborts what was open under it.
func takeID(ctx context.Context, client *kgo.Client) error {
	for {
		_, _, err := client.ProducerID(ctx)
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			return err
		}
		time.Sleep(pause)
	}
}

func recordsOf(topic string, values []string) []*kgo.Record {
	records := []*kgo.Record{}
	for _, value := range values {
		records = append(records, kgo.StringRecord(value))
	}
	for _, each := range records {
		each.Topic = topic
	}
	return records
}

func (t *transactor) transform(r request) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), transformLimit)
	defer cancel()
	transactions := 0
	for ctx.Err() == nil {
		err := t.transformSome(ctx, r, &transactions)
		if err == nil {
			return transactions, nil
		}
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(pause)
	}
	return nil, fmt.Errorf("%d transactions in time", transactions)
}

// transformSome transforms as a member of the group until that stands at the end, or something goes wrong.
func (t *transactor) transformSome(ctx context.Context, r request, transactions *int) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap), kgo.TransactionalID(t.id), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumerGroup(r.Group), kgo.InstanceID(t.id), kgo.ConsumeTopics(r.Source), kgo.Balancers(kgo.RangeBalancer()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(), kgo.SessionTimeout(3*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	// First: as long as another's transaction is open, where the group stands is not known.
	if err := takeID(ctx, session.Client()); err != nil {
		return err
	}
	for {
		position, err := committedBy(ctx, session.Client(), r)
		if err != nil || position >= r.End {
			return err
		}
		if err := transformOne(ctx, session, r, transactions); err != nil {
			return err
		}
	}
}

func committedBy(ctx context.Context, client *kgo.Client, r request) (int64, error) {
	committed, err := kadm.NewClient(client).FetchOffsets(ctx, r.Group)
	if err != nil {
		return 0, err
	}
	place, _ := committed.Lookup(r.Source, 0)
	return place.At, place.Err
}

func transformOne(ctx context.Context, session *kgo.GroupTransactSession, r request, transactions *int) error {
	patience, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	fetches := session.PollRecords(patience, recordsPerTransaction)
	if err := fetches.Err(); err != nil {
		return err
	}
	values := []string{}
	fetches.EachRecord(func(each *kgo.Record) { values = append(values, string(each.Value)+"!") })
	if err := session.Begin(); err != nil {
		return err
	}
	produced := session.ProduceSync(ctx, recordsOf(r.Target, values)...).FirstErr()
	isCommitted, err := session.End(ctx, kgo.TransactionEndTry(produced == nil))
	if isCommitted {
		*transactions++
	}
	return errors.Join(produced, err)
}
