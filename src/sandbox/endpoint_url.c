#include "sandbox/endpoint_url.h"

#include <string.h>

#include <curl/curl.h>

#include "base/address.h"

static int
has_part(CURLU *url, CURLUPart part)
{
        char *text = NULL;
        int found = curl_url_get(url, part, &text, 0) == CURLUE_OK;

        curl_free(text);
        return found;
}

static int
check_parts(CURLU *url, struct error *error)
{
        char *scheme = NULL, *host = NULL;
        int result = 0;

        if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
            curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
                result = error_set(error, "must be an absolute URL, such as https://gateway.example/hooks");
        else if (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)
                result = error_set(error, "must be an https URL");
        else if (strcmp(scheme, "http") == 0 && !address_is_loopback_host(host))
                result =
                    error_set(error, "must be an https URL; http is for 127.0.0.1, [::1] and localhost only");
        else if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_PASSWORD))
                result = error_set(error, "must not have a user name or password in it");
        else if (has_part(url, CURLUPART_FRAGMENT))
                result = error_set(error, "must not have a fragment");
        curl_free(scheme);
        curl_free(host);
        return result;
}

int
endpoint_url_check(const char *text, struct error *error)
{
        CURLU *url;
        int result;

        if (strlen(text) > ENDPOINT_URL_MAX)
                return error_set(error, "must have at most %d bytes", ENDPOINT_URL_MAX);
        for (const char *c = text; *c != '\0'; c++) {
                if (*c <= ' ' || *c > '~')
                        return error_set(error, "must be of visible ASCII characters");
        }
        url = curl_url();
        if (url == NULL)
                return error_set(error, "cannot be read: out of memory");
        if (curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK)
                result = error_set(error, "must be an absolute URL, such as https://gateway.example/hooks");
        else
                result = check_parts(url, error);
        curl_url_cleanup(url);
        return result;
}
