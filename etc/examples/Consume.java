/*
 * Consume events: java -cp 'libs/*' Consume.java BROKERS GROUP TOPIC...
 *
 * Needs kafka-clients and a JDK of version 17 or newer. Kafka returns an event after a restart if its offset was not
 * committed; this example has no database, so process() may see it twice.
 */
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

class Consume {
    static volatile boolean stopping;

    public static void main(String[] args) {
        if (args.length < 3) {
            System.err.println("usage: Consume BROKERS GROUP TOPIC...");
            System.exit(1);
        }
        var main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try { main.join(30_000); } catch (InterruptedException e) { }  // it may be waiting in System.exit()
        }));
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", args[0], "group.id", args[1], "isolation.level", "read_committed",
            "enable.auto.commit", false, "auto.offset.reset", "earliest",
            "allow.auto.create.topics", false));  // Gatepost's topics need other settings than the brokers' defaults
        // If the brokers require TLS or a login: put the lines of gatepost-consumers(7), LOGIN, here.
        var text = new StringDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, text, text)) {  // close() leaves the group
            var topics = List.of(args).subList(2, args.length);
            for (var topic : topics)
                if (consumer.partitionsFor(topic).isEmpty())  // poll() would wait for it
                    throw new IllegalArgumentException("there is no topic " + topic);
            consumer.subscribe(topics);
            while (!stopping) {
                for (var record : consumer.poll(Duration.ofSeconds(1)))
                    process(record);
                try {
                    consumer.commitSync();
                } catch (RebalanceInProgressException | CommitFailedException e) {
                    System.err.println("offsets were not committed: " + e.getMessage());
                }
            }
        } catch (ApiException e) {  // such as a wrong password; it has no stack trace, and JDK 17 fails to print it
            throw new IllegalStateException(e);
        }
    }

    // Process an event here, a second time, perhaps: by ce_source and ce_id. If this throws, the batch comes again.
    static void process(ConsumerRecord<String, String> record) {
        System.out.println(String.join(" ", header(record, "ce_source"), header(record, "ce_id"),
                                       header(record, "ce_type"), record.value()));
    }

    static String header(ConsumerRecord<String, String> record, String name) {
        var header = record.headers().lastHeader(name);
        if (header == null)
            throw new IllegalArgumentException(
                record.topic() + ": the record at offset " + record.offset() + " is no event: it has no " + name);
        return new String(header.value(), StandardCharsets.UTF_8);
    }
}
