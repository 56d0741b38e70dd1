#include "sandbox/mail.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "sandbox/file.h"

#define DATE_SIZE 64

/* RFC 5322 section 3.3, in UTC. The locale is C: the program sets none. */
static char *
date(char text[DATE_SIZE])
{
        time_t now = time(NULL);
        struct tm tm;

        (void)gmtime_r(&now, &tm);
        (void)strftime(text, DATE_SIZE, "%a, %d %b %Y %H:%M:%S +0000", &tm);
        return text;
}

static char *
compose(const struct mail *mail)
{
        char when[DATE_SIZE];

        return mem_printf("Date: %s\r\n"
                          "From: Invoicing service <no-reply@sandbox.invalid>\r\n"
                          "To: users-of-%s@sandbox.invalid\r\n"
                          "Subject: A webhook delivery was given up after %u attempts\r\n"
                          "Message-ID: <%s@sandbox.invalid>\r\n"
                          "MIME-Version: 1.0\r\n"
                          "Content-Type: text/plain; charset=utf-8\r\n"
                          "Content-Transfer-Encoding: 8bit\r\n"
                          "\r\n"
                          "A webhook delivery did not get a 2xx answer and is not tried again.\r\n"
                          "\r\n"
                          "event:        %s\r\n"
                          "endpoint:     %s\r\n"
                          "webhook-id:   %s\r\n"
                          "delivery-id:  %s\r\n"
                          "attempts:     %u\r\n"
                          "last outcome: %s\r\n",
                          date(when), mail->entity, mail->n_attempts, mail->delivery_id, mail->kind,
                          mail->url, mail->webhook_id, mail->delivery_id, mail->n_attempts,
                          mail->last_outcome);
}

int
mail_write(const char *directory, const struct mail *mail, struct error *error)
{
        char *path = mem_printf("%s/%s.eml", directory, mail->delivery_id), *text = compose(mail);
        int result = file_replace(path, text, strlen(text), error);

        free(text);
        free(path);
        return result;
}
