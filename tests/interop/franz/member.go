package main

import (
	"bufio"
	"context"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ownership tells what a member owns, whenever that changes.
type ownership struct {
	lock  sync.Mutex
	topic string
	owned map[int32]bool
}

func (o *ownership) change(partitions map[string][]int32, isOwned bool) {
	o.lock.Lock()
	defer o.lock.Unlock()
	for _, each := range partitions[o.topic] {
		if isOwned {
			o.owned[each] = true
		} else {
			delete(o.owned, each)
		}
	}
	all := []int{}
	for each := range o.owned {
		all = append(all, int(each))
	}
	sort.Ints(all)
	say(map[string]any{"event": "assigned", "partitions": all})
}

// member reads in a group until standard input ends: options and events as tests/interop/drivers/member_lines.py says.
func member(arguments []string) {
	group, topic := arguments[0], arguments[1]
	options := map[string]string{"--assignor": "range", "--session": "3000"}
	for at := 2; at+1 < len(arguments); at += 2 {
		options[arguments[at]] = arguments[at+1]
	}
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	owner := &ownership{topic: topic, owned: map[int32]bool{}}
	session, err := strconv.Atoi(options["--session"])
	if err != nil {
		panic(err)
	}
	settings := []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(balancers[options["--assignor"]]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(time.Duration(session) * time.Millisecond), kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) { owner.change(given, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) { owner.change(taken, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { owner.change(lost, false) }),
	}
	if instance, isStatic := options["--instance"]; isStatic {
		settings = append(settings, kgo.InstanceID(instance))
	}
	client, err := newClient(settings...)
	if err != nil {
		panic(err)
	}
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		leave()
	}()
	for ctx.Err() == nil {
		records := [][]any{}
		client.PollFetches(ctx).EachRecord(func(each *kgo.Record) {
			records = append(records, []any{each.Partition, each.Offset, string(each.Value)})
		})
		if len(records) > 0 {
			if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
				panic(err)
			}
			say(map[string]any{"event": "records", "records": records})
		}
		client.AllowRebalance()
	}
	client.Close()
	say(map[string]any{"event": "left"})
}
