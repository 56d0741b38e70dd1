// A receiver on fasthttp.
package main

import (
	"log"
	"os"
	"strings"

	"bench/delivery"

	"github.com/valyala/fasthttp"
)

func answer(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBodyString(text)
}

func main() {
	service, err := delivery.FromEnvironment()
	if err != nil {
		log.Fatal(err)
	}
	names := service.Names
	handle := func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) != service.Path {
			answer(ctx, 404, `{"ok":false,"error":{"code":"NOT_FOUND"}}`)
			return
		}
		if !ctx.IsPost() {
			answer(ctx, 405, `{"ok":false,"error":{"code":"METHOD_NOT_ALLOWED"}}`)
			return
		}
		headers := delivery.Headers{
			Signature:  string(ctx.Request.Header.Peek(names.Signature)),
			Timestamp:  string(ctx.Request.Header.Peek(names.Timestamp)),
			WebhookID:  string(ctx.Request.Header.Peek(names.WebhookID)),
			DeliveryID: string(ctx.Request.Header.Peek(names.DeliveryID)),
		}
		body := ctx.PostBody() // good until the handler returns, which is after the record was acknowledged
		switch {
		case strings.TrimSpace(headers.DeliveryID) == "" || headers.WebhookID == "":
			answer(ctx, 400, `{"ok":false,"error":{"code":"BAD_REQUEST"}}`)
		case !service.IsGenuine(&headers, body):
			answer(ctx, 401, `{"ok":false,"error":{"code":"INVALID_SIGNATURE"}}`)
		case !service.IsFresh(&headers):
			answer(ctx, 401, `{"ok":false,"error":{"code":"STALE_TIMESTAMP"}}`)
		case service.IsKnown(headers.DeliveryID):
			answer(ctx, 200, `{"ok":true}`)
		case service.Publish(&headers, body) != nil:
			answer(ctx, 503, `{"ok":false,"error":{"code":"UNAVAILABLE"}}`)
		default:
			answer(ctx, 200, `{"ok":true}`)
		}
	}
	server := &fasthttp.Server{
		Handler:               handle,
		MaxRequestBodySize:    delivery.MaxBody,
		NoDefaultServerHeader: true,
		NoDefaultDate:         true,
		Concurrency:           8192,
	}
	address := "127.0.0.1:" + os.Getenv("PORT")
	if certificate := os.Getenv("TLS_CERTIFICATE"); certificate != "" {
		log.Fatal(server.ListenAndServeTLS(address, certificate, os.Getenv("TLS_KEY")))
	}
	log.Fatal(server.ListenAndServe(address))
}
