#include "cli/status_findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "suites.h"

/* The status is 1000 s after a start at 10000 s. */
#define STATUS(members) "{\"startTimeSeconds\":10000,\"uptimeSeconds\":1000," members "}"
#define REFUSED(time, source, outcome, detail) \
        "{\"timeSeconds\":" time ",\"count\":3,\"source\":\"" source "\",\"outcome\":\"" outcome \
        "\",\"detail\":\"" detail "\"}"
#define PARTITION(id, state, cause) "{\"partition\":" id ",\"state\":\"" state "\",\"cause\":\"" cause "\"}"

/* Return all findings as text, to be freed. */
static char *
find(const char *text)
{
        struct error error;
        struct json_value *status = json_tree_parse(text, strlen(text), &error);
        struct findings findings = {0};
        char *printed = NULL;
        size_t len;
        FILE *out = open_memstream(&printed, &len);

        ck_assert_msg(status != NULL, "%s", error.text);
        ck_assert_ptr_nonnull(out);
        status_findings(status, &findings);
        for (size_t i = 0; i < findings.n; i++)
                finding_print(out, &findings.items[i]);
        (void)fclose(out);
        findings_clear(&findings);
        json_tree_free(status);
        return printed;
}

static const struct {
        const char *status;
        const char *expected;
} cases[] = {
    {STATUS("\"spool\":{\"lostRecords\":0,\"inPlace\":true,\"spoolingSinceSeconds\":null,"
            "\"lastError\":null},\"refusals\":[],\"partitions\":[" PARTITION("0", "routing", "") "]"),
     ""},
    {STATUS("\"spool\":{\"lostRecords\":2,\"inPlace\":false,\"records\":5}"),
     "spool: deliveries that were answered 200 cannot be read back: 2\n"
     "  remedy: gatepostd(8), RUNBOOK, GatepostSpoolDamaged\n"
     "spool: its directory was renamed, deleted or replaced; without it, outages of Kafka are answered 503\n"
     "  remedy: put the directory back; if it holds no delivery, restart gatepostd instead\n"
     "spool: note: deliveries that wait for Kafka: 5\n"},
    {STATUS("\"spool\":{\"lastError\":{\"error\":\"disk\",\"timeSeconds\":10999}}"),
     "spool: the disk is full, so deliveries that come while Kafka is away are answered 503\n"
     "  remedy: make room on the disk of the spool's directory\n"},
    {STATUS("\"logTruncations\":{\"count\":1,\"timeSeconds\":10900}"),
     "losses: times that Kafka lost deliveries that it had acknowledged: 1\n"
     "  remedy: gatepostd(8), RUNBOOK, GatepostLogTruncated\n"},
    {"{\"startTimeSeconds\":0,\"uptimeSeconds\":100000,\"logTruncations\":{\"count\":1,\"timeSeconds\":9}}",
     ""},
    /* Nothing was accepted since. */
    {STATUS("\"lastAcceptedSeconds\":{\"a\":10939},\"refusals\":[" REFUSED(
         "10940", "a", "malformed", "no header") "," REFUSED("10930", "a", "malformed", "another") "]"),
     "[source a]: 6 refused as malformed, the last 1 min 0 s ago: no header\n"
     "  remedy: set header_prefix to that of the service, and reload\n"},
    {STATUS("\"lastAcceptedSeconds\":{\"a\":10941},\"refusals\":[" REFUSED("10940", "a", "malformed",
                                                                           "no header") "]"),
     "[source a]: warning: 3 refused as malformed, the last 1 min 0 s ago: no header\n"
     "  remedy: set header_prefix to that of the service, and reload\n"},
    /* A path that resembles one of a source, and that of a scanner. */
    {STATUS("\"refusals\":[" REFUSED("10940", "a", "not_found", "the path is /hok") "," REFUSED(
         "10930", "", "not_found", "the path is /wp") "," REFUSED("1", "", "error", "long ago") "]"),
     "[source a]: 3 refused as not_found, the last 1 min 0 s ago: the path is /hok\n"
     "  remedy: give the service a URL that ends with the path of the source\n"
     "requests: note: 3 others refused, which probably were no deliveries\n"},
    {STATUS("\"recentlyQuarantined\":[{\"timeSeconds\":10998,\"reason\":\"missing-kind\",\"detail\":\"no "
            "/event\"},{\"timeSeconds\":2,\"reason\":\"unknown-kind\",\"detail\":\"x\"}]"),
     "quarantine: warning: 1 quarantined within the hour, the last 2 s ago as missing-kind: no /event\n"
     "  remedy: gatepost quarantine list; gatepost-consumers(7), QUARANTINE\n"},
    {STATUS("\"partitions\":[" PARTITION("0", "waiting", "output-topic") "," PARTITION(
         "1", "refused", "beyond-end") "," PARTITION("2", "waiting", "output-topic") "]"),
     "partition 0, 2: warning: waiting: output-topic\n"
     "  remedy: gatepost topics list; gatepost topics create, if one is missing\n"
     "partition 1: refused: beyond-end\n"
     "  remedy: gatepostd(8), RUNBOOK, GatepostPartitionNotRouted\n"},
    {"{\"spool\":3,\"refusals\":{},\"partitions\":[1],\"logTruncations\":\"x\"}",
     "partition 0: warning: \n  remedy: gatepostd(8), RUNBOOK, GatepostPartitionNotRouted\n"},
};

START_TEST(test_state_becomes_findings)
{
        char *printed = find(cases[_i].status);

        ck_assert_str_eq(printed, cases[_i].expected);
        free(printed);
}
END_TEST

Suite *
suite_status_findings(void)
{
        Suite *suite = suite_create("status_findings");
        TCase *tests = tcase_create("status_findings");

        tcase_add_loop_test(tests, test_state_becomes_findings, 0, ARRAY_LEN(cases));
        suite_add_tcase(suite, tests);
        return suite;
}
