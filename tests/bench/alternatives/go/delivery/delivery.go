// Package delivery is shared by both services: it checks deliveries, publishes them to Kafka, and remembers their ids.
package delivery

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"hash/maphash"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	MaxBody     = 1 << 20
	rememberFor = 24 * time.Hour
	nShards     = 256
)

// Headers are the delivery headers of a request. The service copies the values that it keeps.
type Headers struct {
	Signature, Timestamp, WebhookID, DeliveryID string
}

// Names are the names of the delivery headers.
type Names struct {
	Signature, Timestamp, WebhookID, DeliveryID string
}

type shard struct {
	sync.Mutex
	seen map[string]int64
}

// Service publishes deliveries. Any goroutine may use it.
type Service struct {
	Path  string
	Names Names

	client    *kgo.Client
	topic     string
	instance  []byte
	tolerance int64
	macs      sync.Pool
	seed      maphash.Seed
	shards    [nShards]shard
}

// FromEnvironment returns a service configured by environment variables.
func FromEnvironment() (*Service, error) {
	linger, _ := strconv.Atoi(os.Getenv("LINGER_MS"))
	tolerance, _ := strconv.ParseInt(os.Getenv("TOLERANCE_S"), 10, 64)
	prefix := os.Getenv("HEADER_PREFIX")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("BOOTSTRAP"), ",")...),
		kgo.DefaultProduceTopic(os.Getenv("TOPIC")),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(time.Duration(linger)*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(100000),
		kgo.RecordDeliveryTimeout(8*time.Second),
	)
	if err != nil {
		return nil, err
	}
	s := &Service{
		Path:      os.Getenv("WEBHOOK_PATH"),
		Names:     Names{prefix + "-signature", prefix + "-timestamp", prefix + "-webhook-id", prefix + "-delivery-id"},
		client:    client,
		topic:     os.Getenv("TOPIC"),
		instance:  []byte("bench"),
		tolerance: tolerance,
		seed:      maphash.MakeSeed(),
	}
	secret := []byte(os.Getenv("SECRET"))
	s.macs.New = func() any { return hmac.New(sha256.New, secret) }
	for i := range s.shards {
		s.shards[i].seen = make(map[string]int64)
	}
	go s.forget()
	return s, client.Ping(context.Background())
}

// IsGenuine reports whether the signature is valid.
func (s *Service) IsGenuine(h *Headers, body []byte) bool {
	var sum, given [sha256.Size]byte
	if len(h.Signature) != 7+2*sha256.Size || h.Signature[:7] != "sha256=" {
		return false
	}
	if n, err := hex.Decode(given[:], []byte(h.Signature[7:])); n != sha256.Size || err != nil {
		return false
	}
	mac := s.macs.Get().(hash.Hash)
	mac.Reset()
	mac.Write([]byte(h.Timestamp))
	mac.Write([]byte{'.'})
	mac.Write(body)
	mac.Sum(sum[:0])
	s.macs.Put(mac)
	return subtle.ConstantTimeCompare(sum[:], given[:]) == 1
}

// IsFresh reports whether the timestamp is within the tolerance.
func (s *Service) IsFresh(h *Headers) bool {
	at, err := strconv.ParseInt(h.Timestamp, 10, 64)
	age := time.Now().Unix() - at
	return err == nil && age <= s.tolerance && age >= -s.tolerance
}

func (s *Service) shard(id string) *shard {
	return &s.shards[maphash.String(s.seed, id)%nShards]
}

// IsKnown reports whether the delivery was published by this process.
func (s *Service) IsKnown(id string) bool {
	shard := s.shard(id)
	shard.Lock()
	_, known := shard.seen[id]
	shard.Unlock()
	return known
}

func (s *Service) remember(id string) {
	shard := s.shard(id)
	shard.Lock()
	shard.seen[id] = time.Now().Unix()
	shard.Unlock()
}

func (s *Service) forget() {
	for range time.Tick(time.Minute) {
		oldest := time.Now().Add(-rememberFor).Unix()
		for i := range s.shards {
			s.shards[i].Lock()
			for id, at := range s.shards[i].seen {
				if at < oldest {
					delete(s.shards[i].seen, id)
				}
			}
			s.shards[i].Unlock()
		}
	}
}

// waiter passes the result of publishing a record to the request that waits for it.
type waiter struct {
	done   chan error
	record kgo.Record
	header [6]kgo.RecordHeader
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan error, 1)} }}

// Publish returns when all in-sync replicas have the delivery. The caller must not reuse the body before that.
func (s *Service) Publish(h *Headers, body []byte) error {
	w := waiters.Get().(*waiter)
	w.header = [6]kgo.RecordHeader{
		{Key: "gatepost-source", Value: []byte("invoicing")},
		{Key: "gatepost-webhook-id", Value: []byte(h.WebhookID)},
		{Key: "gatepost-timestamp", Value: []byte(h.Timestamp)},
		{Key: "gatepost-signature", Value: []byte(h.Signature)},
		{Key: "gatepost-received", Value: time.Now().UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z")},
		{Key: "gatepost-instance", Value: s.instance},
	}
	w.record = kgo.Record{Key: []byte(h.DeliveryID), Value: body, Headers: w.header[:]}
	s.client.Produce(context.Background(), &w.record, func(_ *kgo.Record, err error) { w.done <- err })
	err := <-w.done
	waiters.Put(w)
	if err == nil {
		s.remember(h.DeliveryID)
	}
	return err
}
