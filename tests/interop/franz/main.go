// Driver of franz-go: JSON lines as tests/interop/drivers/json_lines.py says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

const limit = 20 * time.Second

var bootstrap = os.Args[1]

type record struct {
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
}

type header struct {
	name  string
	value []byte
}

func (h header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.name, h.value}) }

func (h *header) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&h.name, &h.value})
}

type request struct {
	Do              string            `json:"do"`
	Topic           string            `json:"topic"`
	Records         []record          `json:"records"`
	Compression     string            `json:"compression"`
	Acks            string            `json:"acks"`
	Idempotent      bool              `json:"idempotent"`
	MaxRequestBytes int32             `json:"max_request_bytes"`
	Position        json.RawMessage   `json:"position"`
	Count           int               `json:"count"`
	Isolation       string            `json:"isolation"`
	Partitions      int32             `json:"partitions"`
	Configs         map[string]string `json:"configs"`
	Key             string            `json:"key"`
	Value           string            `json:"value"`
	At              any               `json:"at"`
	Before          int64             `json:"before"`
	Values          []string          `json:"values"`
	Commit          bool              `json:"commit"`
	Group           string            `json:"group"`
	Source          string            `json:"source"`
	Target          string            `json:"target"`
	End             int64             `json:"end"`
}

func say(answer any) {
	line, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func newClient(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(bootstrap))...)
}

func produce(ctx context.Context, r request) (any, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}
	options := []kgo.Opt{
		kgo.ProducerBatchCompression(codecs[r.Compression]),
		kgo.RequiredAcks(acks[r.Acks]),
		kgo.ProducerBatchMaxBytes(r.MaxRequestBytes),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(5 * time.Millisecond),
	}
	if !r.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := newClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, each := range r.Records {
		one := &kgo.Record{Topic: r.Topic, Key: each.Key, Value: each.Value, Timestamp: time.UnixMilli(each.Timestamp)}
		for _, h := range each.Headers {
			one.Headers = append(one.Headers, kgo.RecordHeader{Key: h.name, Value: h.value})
		}
		records = append(records, one)
	}
	offsets := []int64{}
	for _, result := range client.ProduceSync(ctx, records...) {
		if result.Err != nil {
			return nil, result.Err
		}
		offsets = append(offsets, result.Record.Offset)
	}
	return offsets, nil
}

// positionedHook says once that the first fetch has been sent: the end is known by then.
type positionedHook struct{ once sync.Once }

func (h *positionedHook) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	const fetch = 1
	if key == fetch && err == nil {
		h.once.Do(func() { say(map[string]string{"event": "positioned"}) })
	}
}

func startOf(position json.RawMessage) (kgo.Offset, bool) {
	var name string
	if json.Unmarshal(position, &name) == nil {
		if name == "end" {
			return kgo.NewOffset().AtEnd(), true
		}
		return kgo.NewOffset().AtStart(), false
	}
	var at struct {
		Offset    *int64 `json:"offset"`
		Timestamp *int64 `json:"timestamp"`
	}
	if err := json.Unmarshal(position, &at); err != nil {
		panic(err)
	}
	if at.Offset != nil {
		return kgo.NewOffset().At(*at.Offset), false
	}
	return kgo.NewOffset().AfterMilli(*at.Timestamp), false
}

func consume(ctx context.Context, r request) (any, error) {
	start, isEnd := startOf(r.Position)
	isolation := kgo.ReadUncommitted()
	if r.Isolation == "read_committed" {
		isolation = kgo.ReadCommitted()
	}
	options := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.Topic: {0: start}}),
		kgo.FetchIsolationLevel(isolation),
	}
	if isEnd {
		options = append(options, kgo.WithHooks(&positionedHook{}))
	}
	client, err := newClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := []record{}
	for len(records) < r.Count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d of %d records: %w", len(records), r.Count, err)
		}
		fetches.EachRecord(func(found *kgo.Record) {
			one := record{found.Offset, found.Timestamp.UnixMilli(), found.Key, found.Value, []header{}}
			for _, h := range found.Headers {
				one.Headers = append(one.Headers, header{h.Key, h.Value})
			}
			records = append(records, one)
		})
	}
	return records, nil
}

func createTopic(ctx context.Context, admin *kadm.Client, r request) (any, error) {
	configs := map[string]*string{}
	for key, value := range r.Configs {
		configs[key] = kadm.StringPtr(value)
	}
	_, err := admin.CreateTopic(ctx, r.Partitions, 1, configs, r.Topic)
	return nil, err
}

func topicConfigs(ctx context.Context, admin *kadm.Client, r request) (any, error) {
	found, err := admin.DescribeTopicConfigs(ctx, r.Topic)
	if err != nil {
		return nil, err
	}
	configs := map[string]*string{}
	for _, each := range found[0].Configs {
		configs[each.Key] = each.Value
	}
	return configs, found[0].Err
}

func offsets(ctx context.Context, admin *kadm.Client, r request) (any, error) {
	lookUps := map[any]func(context.Context, ...string) (kadm.ListedOffsets, error){
		"earliest": admin.ListStartOffsets, "latest": admin.ListEndOffsets, "max_timestamp": admin.ListMaxTimestampOffsets,
	}
	lookUp, isNamed := lookUps[r.At]
	if !isNamed {
		lookUp = func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
			return admin.ListOffsetsAfterMilli(ctx, int64(r.At.(float64)), topics...)
		}
	}
	found, err := lookUp(ctx, r.Topic)
	if err != nil {
		return nil, err
	}
	one, _ := found.Lookup(r.Topic, 0)
	return one.Offset, one.Err
}

func deleteRecords(ctx context.Context, admin *kadm.Client, r request) (any, error) {
	before := kadm.Offsets{}
	before.AddOffset(r.Topic, 0, r.Before, -1)
	deleted, err := admin.DeleteRecords(ctx, before)
	if err != nil {
		return nil, err
	}
	one, _ := deleted.Lookup(r.Topic, 0)
	return one.LowWatermark, one.Err
}

func listTopics(ctx context.Context, admin *kadm.Client, _ request) (any, error) {
	found, err := admin.ListTopics(ctx)
	names := found.Names()
	sort.Strings(names)
	return names, err
}

func describeTopic(ctx context.Context, admin *kadm.Client, r request) (any, error) {
	found, err := admin.ListTopics(ctx, r.Topic)
	return len(found[r.Topic].Partitions), err
}

func createPartitions(ctx context.Context, admin *kadm.Client, r request) (any, error) {
	grown, err := admin.UpdatePartitions(ctx, int(r.Partitions), r.Topic)
	if err != nil {
		return nil, err
	}
	return nil, grown.Error()
}

func setTopicConfig(ctx context.Context, admin *kadm.Client, r request) (any, error) {
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: r.Key, Value: kadm.StringPtr(r.Value)}
	changed, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, r.Topic)
	if err != nil {
		return nil, err
	}
	return nil, changed[0].Err
}

func describeCluster(ctx context.Context, admin *kadm.Client, _ request) (any, error) {
	metadata, err := admin.BrokerMetadata(ctx)
	return map[string]any{"brokers": metadata.Brokers.NodeIDs(), "controller": metadata.Controller}, err
}

// The version that a broker is taken for by its API keys.
func brokerVersion(ctx context.Context, admin *kadm.Client, _ request) (any, error) {
	versions, err := admin.ApiVersions(ctx)
	if err != nil {
		return nil, err
	}
	var guess string
	versions.Each(func(broker kadm.BrokerApiVersions) {
		if err = broker.Err; err != nil {
			return
		}
		guess = kversion.FromApiVersionsResponse(broker.Raw()).VersionGuess()
	})
	return guess, err
}

var administration = map[string]func(context.Context, *kadm.Client, request) (any, error){
	"create_topic":      createTopic,
	"list_topics":       listTopics,
	"describe_topic":    describeTopic,
	"create_partitions": createPartitions,
	"topic_configs":     topicConfigs,
	"set_topic_config":  setTopicConfig,
	"offsets":           offsets,
	"delete_records":    deleteRecords,
	"describe_cluster":  describeCluster,
	"broker_version":    brokerVersion,
	"delete_topic": func(ctx context.Context, admin *kadm.Client, r request) (any, error) {
		deleted, err := admin.DeleteTopics(ctx, r.Topic)
		if err != nil {
			return nil, err
		}
		return nil, deleted.Error()
	},
}

func run(r request) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	switch r.Do {
	case "produce":
		return produce(ctx, r)
	case "consume":
		return consume(ctx, r)
	}
	client, err := newClient()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return administration[r.Do](ctx, kadm.NewClient(client), r)
}

func main() {
	carryOut := run
	switch {
	case len(os.Args) > 3:
		member(os.Args[2:])
		return
	case len(os.Args) == 3:
		carryOut = (&transactor{id: os.Args[2]}).run
	}
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			panic(err)
		}
		result, err := carryOut(r)
		if err == nil {
			say(map[string]any{"result": result})
			continue
		}
		code := int16(-1)
		var known *kerr.Error
		if errors.As(err, &known) {
			code = known.Code
		}
		say(map[string]any{"error": map[string]any{"code": code, "text": err.Error()}})
	}
}
