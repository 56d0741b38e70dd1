// A receiver on net/http.
package main

import (
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"bench/delivery"
)

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// read returns the whole body. If its length is declared, the buffer is allocated once.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, delivery.MaxBody)
	if r.ContentLength < 0 || r.ContentLength > delivery.MaxBody {
		return io.ReadAll(limited)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(limited, body)
	return body, err
}

func main() {
	service, err := delivery.FromEnvironment()
	if err != nil {
		log.Fatal(err)
	}
	names := service.Names
	handle := func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			answer(w, 405, `{"ok":false,"error":{"code":"METHOD_NOT_ALLOWED"}}`)
			return
		}
		headers := delivery.Headers{
			Signature:  r.Header.Get(names.Signature),
			Timestamp:  r.Header.Get(names.Timestamp),
			WebhookID:  r.Header.Get(names.WebhookID),
			DeliveryID: r.Header.Get(names.DeliveryID),
		}
		body, err := read(w, r)
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			answer(w, 413, `{"ok":false,"error":{"code":"PAYLOAD_TOO_LARGE"}}`)
		case err != nil || headers.DeliveryID == "" || headers.WebhookID == "":
			answer(w, 400, `{"ok":false,"error":{"code":"BAD_REQUEST"}}`)
		case !service.IsGenuine(&headers, body):
			answer(w, 401, `{"ok":false,"error":{"code":"INVALID_SIGNATURE"}}`)
		case !service.IsFresh(&headers):
			answer(w, 401, `{"ok":false,"error":{"code":"STALE_TIMESTAMP"}}`)
		case service.IsKnown(headers.DeliveryID):
			answer(w, 200, `{"ok":true}`)
		case service.Publish(&headers, body) != nil:
			answer(w, 503, `{"ok":false,"error":{"code":"UNAVAILABLE"}}`)
		default:
			answer(w, 200, `{"ok":true}`)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc(service.Path, handle)
	server := &http.Server{
		Addr:              "127.0.0.1:" + os.Getenv("PORT"),
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       60 * time.Second,
	}
	if certificate := os.Getenv("TLS_CERTIFICATE"); certificate != "" {
		log.Fatal(server.ListenAndServeTLS(certificate, os.Getenv("TLS_KEY")))
	}
	log.Fatal(server.ListenAndServe())
}
