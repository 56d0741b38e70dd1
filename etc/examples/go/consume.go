// Consume events, each once: go run . BROKERS GROUP TOPIC...
//
// Needs Go 1.18 or newer. Appends each event to events.jsonl, which is also the memory of what has been processed: an event
// comes again if its processing fails, or if a crash prevents that it is remembered. A group of several members needs one
// store for all: a database with a unique key of source and id. SIGTERM stops the consumer after the current batch.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type event struct {
	Source string `json:"source"`
	ID     string `json:"id"`
	Type   string `json:"type"`
	Body   string `json:"body"`
}

// A journal holds the processed events: one line each, on disk before their offsets are committed.
type journal struct {
	file *os.File
	seen map[[2]string]bool
}

func openJournal(name string) (*journal, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%s is in use by another consumer; give each a directory of its own: %w", name, err)
	}
	j := &journal{file: file, seen: map[[2]string]bool{}}
	var end int64
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err != nil { // the end, or a line that was cut off by a crash
			break
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		j.seen[[2]string{e.Source, e.ID}] = true
		end += int64(len(line))
	}
	if err := file.Truncate(end); err != nil {
		return nil, err
	}
	_, err = file.Seek(end, 0)
	return j, err
}

func (j *journal) has(e event) bool {
	return j.seen[[2]string{e.Source, e.ID}]
}

func (j *journal) add(e event) error {
	j.seen[[2]string{e.Source, e.ID}] = true
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	return err
}

// Process a new event here. If this returns an error, the event comes again.
func process(e event) error {
	fmt.Println(e.Source, e.ID, e.Type, e.Body)
	return nil
}

func take(record *kgo.Record, j *journal) error {
	e := event{Body: string(record.Value)}
	for _, header := range record.Headers {
		switch header.Key {
		case "ce_source":
			e.Source = string(header.Value)
		case "ce_id":
			e.ID = string(header.Value)
		case "ce_type":
			e.Type = string(header.Value)
		}
	}
	if e.Source == "" || e.ID == "" {
		return fmt.Errorf("%s: the record at offset %d is no event: it has no ce_source or ce_id", record.Topic, record.Offset)
	}
	if j.has(e) {
		return nil
	}
	if err := process(e); err != nil {
		return err
	}
	return j.add(e)
}

// poll processes a batch and commits its offsets. The group is not rebalanced meanwhile.
func poll(ctx context.Context, client *kgo.Client, j *journal) error {
	fetches := client.PollRecords(ctx, 500)
	defer client.AllowRebalance()
	for _, failed := range fetches.Errors() {
		if ctx.Err() == nil {
			return fmt.Errorf("%s, partition %d: %w", failed.Topic, failed.Partition, failed.Err)
		}
	}
	for _, record := range fetches.Records() {
		if record.Attrs.IsControl() {
			continue // the end of a transaction
		}
		if err := take(record, j); err != nil {
			return err
		}
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
		log.Print("offsets were not committed: ", err) // they will be with the next batch, or the events come again
	}
	return nil
}

// checkTopics returns an error if a topic does not exist, for which the client would wait silently.
func checkTopics(ctx context.Context, client *kgo.Client, names []string) error {
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, topic)
	}
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, topic := range response.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil && err != kerr.LeaderNotAvailable {
			return fmt.Errorf("%s: %w", *topic.Topic, err)
		}
	}
	return nil
}

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: consume BROKERS GROUP TOPIC...")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	j, err := openJournal("events.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ConsumerGroup(os.Args[2]),
		kgo.ConsumeTopics(os.Args[3:]...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // so that their offsets are committed, too, and the lag becomes 0
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		// A batch that takes longer goes to another member, too, when one joins.
		kgo.RebalanceTimeout(5*time.Minute),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)), // such as brokers that do not answer
		// If the brokers require TLS or a login: put the lines of gatepost-consumers(7), LOGIN, here, and its import above.
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := checkTopics(ctx, client, os.Args[3:]); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
	for ctx.Err() == nil {
		if err := poll(ctx, client, j); err != nil {
			client.CloseAllowingRebalance()
			log.Fatal(err)
		}
	}
	client.CloseAllowingRebalance() // leaves the group, so that other members get its partitions at once
}
