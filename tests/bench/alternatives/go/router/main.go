// A router: reads deliveries, drops repeats, and publishes events by kind in transactions with the consumer's offsets. It
// remembers delivery-ids in memory only, and verifies no signatures.
package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/valyala/fastjson"
)

const (
	maxBatch  = 30000          // records in a transaction
	maxRecord = 1<<20 + 64<<10 // bytes; max.message.bytes of the topics
	nHeaders  = 7
)

// identity is a keyed digest of a delivery-id. Without pointers the map costs the garbage collector nothing.
type identity [2]uint64

type kind struct {
	topic string
	name  []byte
}

// event is a record to publish with its headers. Batches reuse the events of earlier ones, which Kafka has acknowledged.
type event struct {
	record  kgo.Record
	headers [nHeaders]kgo.RecordHeader
}

type router struct {
	session    *kgo.GroupTransactSession
	kinds      map[string]kind
	quarantine string
	source     []byte
	seeds      [2]maphash.Seed
	seen       map[identity]struct{}
	added      []identity // to seen, in the open transaction
	events     []event
	parser     fastjson.Parser
	timestamp  []byte // that was formatted last
	time       []byte
}

var (
	jsonType    = []byte("application/json")
	specVersion = []byte("1.0")
)

// fromEnvironment returns a router configured by environment variables.
func fromEnvironment() (*router, error) {
	r := &router{
		kinds:      make(map[string]kind),
		quarantine: os.Getenv("QUARANTINE"),
		source:     []byte(os.Getenv("CE_SOURCE")),
		seeds:      [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		seen:       make(map[identity]struct{}),
		events:     make([]event, maxBatch),
	}
	for _, each := range strings.Fields(os.Getenv("EVENTS")) {
		name, topic, _ := strings.Cut(each, "=")
		r.kinds[name] = kind{topic, []byte(name)}
	}
	var err error
	r.session, err = kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(os.Getenv("BOOTSTRAP"), ",")...),
		kgo.ConsumerGroup(os.Getenv("GROUP")),
		kgo.TransactionalID(os.Getenv("GROUP")),
		kgo.ConsumeTopics(os.Getenv("DELIVERIES")),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxPartitionBytes(4<<20),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(maxRecord),
		kgo.ProducerLinger(0),
		kgo.ConcurrentTransactionsBackoff(5*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
			if len(assigned) > 0 {
				fmt.Println("ready")
			}
		}),
	)
	return r, err
}

// isRepeat remembers the delivery, and reports whether it was known.
func (r *router) isRepeat(deliveryID []byte) bool {
	if len(deliveryID) == 0 {
		return false
	}
	id := identity{maphash.Bytes(r.seeds[0], deliveryID), maphash.Bytes(r.seeds[1], deliveryID)}
	before := len(r.seen)
	r.seen[id] = struct{}{}
	if len(r.seen) == before {
		return true
	}
	r.added = append(r.added, id)
	return false
}

// kindOf returns the kind of an event, unless the body is malformed or the kind unknown.
func (r *router) kindOf(body []byte) (kind, bool) {
	value, err := r.parser.ParseBytes(body)
	if err != nil {
		return kind{}, false
	}
	found, ok := r.kinds[string(value.GetStringBytes("event"))]
	return found, ok
}

// timeOf formats a timestamp as RFC 3339.
func (r *router) timeOf(timestamp []byte) []byte {
	if !bytes.Equal(timestamp, r.timestamp) {
		seconds, _ := strconv.ParseInt(string(timestamp), 10, 64)
		r.timestamp = bytes.Clone(timestamp)
		r.time = time.Unix(seconds, 0).UTC().AppendFormat(nil, time.RFC3339)
	}
	return r.time
}

func header(record *kgo.Record, name string) []byte {
	for i := range record.Headers {
		if record.Headers[i].Key == name {
			return record.Headers[i].Value
		}
	}
	return nil
}

// describe fills in the record that is published for a delivery.
func (r *router) describe(delivery *kgo.Record, e *event) {
	kind, ok := r.kindOf(delivery.Value)
	if !ok {
		e.record = kgo.Record{Topic: r.quarantine, Key: delivery.Key, Value: delivery.Value, Headers: delivery.Headers}
		return
	}
	e.headers = [nHeaders]kgo.RecordHeader{
		{Key: "content-type", Value: jsonType},
		{Key: "ce_specversion", Value: specVersion},
		{Key: "ce_id", Value: delivery.Key},
		{Key: "ce_type", Value: kind.name},
		{Key: "ce_source", Value: r.source},
		{Key: "ce_time", Value: r.timeOf(header(delivery, "gatepost-timestamp"))},
		{Key: "ce_webhookid", Value: header(delivery, "gatepost-webhook-id")},
	}
	e.record = kgo.Record{Topic: kind.topic, Key: kind.name, Value: delivery.Value, Headers: e.headers[:]}
}

// batch routes records in one transaction, until none is buffered or the batch is full.
func (r *router) batch(ctx context.Context) error {
	fetches := r.session.PollRecords(ctx, maxBatch)
	if ctx.Err() != nil {
		return nil
	}
	if err := r.session.Begin(); err != nil {
		return err
	}
	failure := kgo.AbortingFirstErrPromise(r.session.Client())
	r.added = r.added[:0]
	for n := 0; ; {
		if err := fetches.Err(); err != nil {
			return err
		}
		for each := fetches.RecordIter(); !each.Done(); {
			delivery := each.Next()
			if !r.isRepeat(delivery.Key) {
				r.describe(delivery, &r.events[n])
				r.session.Produce(context.Background(), &r.events[n].record, failure.Promise())
			}
			n++
		}
		if n == maxBatch {
			break
		}
		if fetches = r.session.PollRecords(nil, maxBatch-n); fetches.NumRecords() == 0 && fetches.Err() == nil {
			break
		}
	}
	if err := failure.Err(); err != nil {
		return err
	}
	committed, err := r.session.End(context.Background(), kgo.TryCommit)
	if !committed { // after a rebalance, the session has rewound
		for _, id := range r.added {
			delete(r.seen, id)
		}
	}
	return err
}

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	r, err := fromEnvironment()
	for err == nil && ctx.Err() == nil {
		err = r.batch(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	r.session.Close()
}
