module bench

go 1.26.0

require (
	github.com/twmb/franz-go v1.22.2
	github.com/valyala/fasthttp v1.62.0
	github.com/valyala/fastjson v1.6.4
)

require (
	github.com/andybalholm/brotli v1.1.1 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/twmb/franz-go/pkg/kmsg v1.15.0 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
)
