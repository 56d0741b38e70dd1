import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * A router by Kafka Streams: reads deliveries, drops repeats, and publishes events by kind, exactly once. It remembers
 * delivery-ids in RocksDB, with a changelog topic, and for ever; it verifies no signatures.
 */
public final class Router extends ContextualProcessor<byte[], byte[], Object, byte[]> {
    private static final String SEEN = "seen", EVENTS = "events", QUARANTINE = "quarantine", DELIVERIES = "deliveries";
    private static final int MAX_BATCH = 30000; // records
    private static final int THREADS = 2; // faster than one, on two processors
    private static final byte[] NOTHING = new byte[0];
    private static final JsonFactory JSON = new JsonFactory();

    private final Map<String, String> topics; // by kind
    private final byte[] source;
    private KeyValueStore<byte[], byte[]> seen;
    private byte[] timestamp, time; // the timestamp that was formatted last

    private Router(Map<String, String> topics, String source) {
        this.topics = topics;
        this.source = bytes(source);
    }

    @Override
    public void init(ProcessorContext<Object, byte[]> context) {
        super.init(context);
        seen = context.getStateStore(SEEN);
    }

    @Override
    public void process(Record<byte[], byte[]> delivery) {
        byte[] id = delivery.key();
        if (id != null && id.length > 0 && seen.putIfAbsent(id, NOTHING) != null) {
            return;
        }
        String kind = kindOf(delivery.value());
        if (topics.containsKey(kind)) {
            context().forward(delivery.<Object>withKey(kind).withHeaders(describe(delivery, kind)), EVENTS);
        } else {
            context().forward(delivery.<Object>withKey(id), QUARANTINE);
        }
    }

    /** Returns the kind of an event, or null if the body is malformed. */
    private static String kindOf(byte[] body) {
        try (JsonParser json = JSON.createParser(body)) {
            String kind = null;
            if (json.nextToken() != JsonToken.START_OBJECT) {
                return null;
            }
            for (String name = json.nextFieldName(); name != null; name = json.nextFieldName()) {
                if (json.nextToken() == JsonToken.VALUE_STRING && name.equals("event")) {
                    kind = json.getText();
                }
                json.skipChildren();
            }
            return json.nextToken() == null ? kind : null;
        } catch (IOException error) {
            return null;
        }
    }

    private Headers describe(Record<byte[], byte[]> delivery, String kind) {
        Headers from = delivery.headers();
        return new RecordHeaders()
            .add("content-type", bytes("application/json"))
            .add("ce_specversion", bytes("1.0"))
            .add("ce_id", delivery.key())
            .add("ce_type", bytes(kind))
            .add("ce_source", source)
            .add("ce_time", timeOf(valueOf(from, "gatepost-timestamp")))
            .add("ce_webhookid", valueOf(from, "gatepost-webhook-id"));
    }

    /** Formats a timestamp as RFC 3339. */
    private byte[] timeOf(byte[] timestamp) {
        if (!Arrays.equals(timestamp, this.timestamp)) {
            this.timestamp = timestamp;
            time = bytes(Instant.ofEpochSecond(Long.parseLong(new String(timestamp, StandardCharsets.US_ASCII))).toString());
        }
        return time;
    }

    private static byte[] valueOf(Headers headers, String name) {
        Header header = headers.lastHeader(name);
        return header == null ? NOTHING : header.value();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static Topology topology(Map<String, String> environment) {
        Map<String, String> topics = new HashMap<>();
        for (String each : environment.get("EVENTS").split(" ")) {
            topics.put(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1));
        }
        return new Topology()
            .addSource(DELIVERIES, new ByteArrayDeserializer(), new ByteArrayDeserializer(), environment.get("DELIVERIES"))
            .addProcessor("router", () -> new Router(topics, environment.get("CE_SOURCE")), DELIVERIES)
            .addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(SEEN), Serdes.ByteArray(),
                                                       Serdes.ByteArray()), "router")
            .addSink(EVENTS, (kind, body, context) -> topics.get(kind), new StringSerializer(), new ByteArraySerializer(),
                     "router")
            .addSink(QUARANTINE, environment.get("QUARANTINE"), new ByteArraySerializer(), new ByteArraySerializer(),
                     "router");
    }

    private static Properties properties(Map<String, String> environment) {
        Properties all = new Properties();
        all.put(StreamsConfig.APPLICATION_ID_CONFIG, environment.get("GROUP"));
        all.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, environment.get("BOOTSTRAP"));
        all.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        all.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        all.put(StreamsConfig.STATE_DIR_CONFIG, "state");
        all.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, THREADS);
        all.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), MAX_BATCH);
        all.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 256 << 10);
        all.put(StreamsConfig.producerPrefix(ProducerConfig.MAX_REQUEST_SIZE_CONFIG), 2000000);
        return all;
    }

    public static void main(String[] arguments) {
        Map<String, String> environment = System.getenv();
        KafkaStreams streams = new KafkaStreams(topology(environment), properties(environment));
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("ready");
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
    }
}
