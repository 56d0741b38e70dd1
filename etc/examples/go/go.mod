module example.com/consume

go 1.18

require (
	github.com/twmb/franz-go v1.15.3
	github.com/twmb/franz-go/pkg/kmsg v1.7.0
)

require (
	github.com/klauspost/compress v1.16.7 // indirect
	github.com/pierrec/lz4/v4 v4.1.18 // indirect
	golang.org/x/crypto v0.23.0 // indirect; for a login by SCRAM
)
