// getter: Go's net/http as a client. Requests each URL on a connection of its own, in order, all with one session cache,
// and prints a line of JSON about each. Written for Go 1.19 and later.
//
//	getter -ca ca.pem [-max 1.2] [-h2] [-round N] URL...
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

type result struct {
	Status  int    `json:"status"`
	Proto   string `json:"proto"`
	Version string `json:"version"`
	Suite   string `json:"suite"`
	Resumed bool   `json:"resumed"`
	Agent   string `json:"agent"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
}

var versions = map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"}

func newTransport(ca string, max string, h2 bool) *http.Transport {
	pem, err := os.ReadFile(ca)
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{
		RootCAs:            x509.NewCertPool(),
		ServerName:         "localhost",
		ClientSessionCache: tls.NewLRUClientSessionCache(16),
	}
	config.RootCAs.AppendCertsFromPEM(pem)
	if max == "1.2" {
		config.MaxVersion = tls.VersionTLS12
	}
	return &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: h2}
}

func get(client *http.Client, url string) (*result, error) {
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	digest := sha256.New()
	bytes, err := io.Copy(digest, response.Body)
	if err != nil {
		return nil, err
	}
	return &result{
		Status:  response.StatusCode,
		Proto:   response.Proto,
		Version: versions[response.TLS.Version],
		Suite:   tls.CipherSuiteName(response.TLS.CipherSuite),
		Resumed: response.TLS.DidResume,
		Agent:   response.Header.Get("X-CSSL-Agent"),
		Bytes:   bytes,
		SHA256:  hex.EncodeToString(digest.Sum(nil)),
	}, nil
}

func main() {
	ca := flag.String("ca", "", "PEM file of the CA")
	max := flag.String("max", "1.3", "newest TLS version offered")
	h2 := flag.Bool("h2", false, "offer HTTP/2")
	round := flag.Int("round", 1, "times to go through the URLs")
	flag.Parse()
	transport := newTransport(*ca, *max, *h2)
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	out := json.NewEncoder(os.Stdout)
	for i := 0; i < *round; i++ {
		for _, url := range flag.Args() {
			r, err := get(client, url)
			if err != nil {
				log.Fatal(err)
			}
			out.Encode(r)
			transport.CloseIdleConnections()
		}
	}
}
