#include "http/tap.h"

#include "http/connection.h"

static int
oversize_status(const struct connection *connection)
{
        const struct connections *all = connection->all;
        const struct head *head = &connection->framing.head;

        if (all->callbacks->on_oversize == NULL)
                return 413;
        return all->callbacks->on_oversize(head->method, head->path, head->path_len, all->arg);
}

static void
refuse_by_framing(struct connection *connection)
{
        const struct framing *framing = &connection->framing;
        int status = framing->fault.status;

        if (status == 413)
                status = framing->state == FRAMING_HEAD ? oversize_status(connection)
                                                        : connection->oversize_status;
        connection_refuse(connection, status, framing->fault.reason);
}

/*
 * Bytes of a body have come. Without room for them the body that has been on its way for longest goes: a genuine delivery
 * comes in one piece, while whoever wants to use all room up must be slow. Returns 0 when it was the connection's own.
 */
static int
take_body(struct connection *connection, size_t len)
{
        struct connections *all = connection->all;
        int full = connection_take_room(connection, len) != 0;

        while (full) {
                struct connection *first = TAILQ_FIRST(&all->bodies);

                if (first == NULL)
                        first = connection;
                connection_refuse(first, 503, "no room for the body; send it again");
                if (first == connection)
                        return 0;
                full = atomic_load(&all->limits.room->used) > all->limits.room->max;
        }
        return 1;
}

/* How much more than before the body's chunks may take beyond their bytes. */
static size_t
more_slack(struct connection *connection)
{
        uint64_t slack = framing_slack(&connection->framing), before = connection->slack;

        if (slack <= before)
                return 0;
        connection->slack = slack;
        return (size_t)(slack - before);
}

/* Feed new bytes to the framing, which overwrites what evhttp cannot read. Returns 0 when the connection was refused. */
static int
judge(struct connection *connection, char *data, size_t len)
{
        while (len > 0) {
                int in_body = connection->framing.state != FRAMING_HEAD;
                enum framing_verdict verdict;
                size_t used;

                if (connection->stage == STAGE_IDLE)
                        connection_enter(connection, STAGE_HEAD);
                verdict = framing_feed(&connection->framing, data, len, &used);
                if (in_body && verdict != FRAMING_REFUSED &&
                    !take_body(connection, used + more_slack(connection)))
                        return 0;
                switch (verdict) {
                case FRAMING_MORE:
                        break;
                case FRAMING_BODY:
                        connection->oversize_status = oversize_status(connection);
                        if (connection->n_complete == 0)
                                connection_enter(connection, STAGE_BODY);
                        break;
                case FRAMING_MESSAGE:
                        connection->held_ahead = 0;
                        connection->slack = 0;
                        if (connection->n_complete++ == 0)
                                connection_enter(connection, STAGE_HANDLING);
                        if (connection->all->tls != NULL) /* whose bufferevent reads on before evhttp does */
                                (void)bufferevent_disable(connection->bev, EV_READ);
                        break;
                case FRAMING_REFUSED:
                        refuse_by_framing(connection);
                        return 0;
                }
                data += used;
                len -= used;
        }
        if (!framing_is_inside(&connection->framing))
                framing_clear(&connection->framing); /* most connections now wait */
        return 1;
}

void
tap_on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
        struct connection *connection = arg;
        struct evbuffer_iovec pieces[16];
        struct evbuffer_ptr start;
        size_t left = info->n_added;

        if (left == 0 || connection->refused || connection->due.status != 0 || connection->evcon == NULL)
                return;
        if (evbuffer_ptr_set(input, &start, info->orig_size, EVBUFFER_PTR_SET) != 0)
                return;
        while (left > 0) {
                int n = evbuffer_peek(input, (ev_ssize_t)left, &start, pieces, ARRAY_LEN(pieces));
                size_t seen = 0;

                n = n > (int)ARRAY_LEN(pieces) ? (int)ARRAY_LEN(pieces) : n;
                for (int i = 0; i < n && seen < left; i++) {
                        size_t len = pieces[i].iov_len < left - seen ? pieces[i].iov_len : left - seen;

                        if (!judge(connection, pieces[i].iov_base, len))
                                return;
                        seen += len;
                }
                if (seen == 0 || (left -= seen) == 0)
                        return;
                if (evbuffer_ptr_set(input, &start, seen, EVBUFFER_PTR_ADD) != 0)
                        return;
        }
}
