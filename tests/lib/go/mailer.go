// mailer: Go's net/smtp as a client. Sends each mail on a connection of its own, over STARTTLS, all with one session cache, and
// prints a line of JSON about each. The mail is standard input. Written for Go 1.19 and later.
//
//	mailer -ca ca.pem [-max 1.2] [-count N] ADDRESS
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net"
	"net/smtp"
	"os"
)

type result struct {
	Version string `json:"version"`
	Resumed bool   `json:"resumed"`
}

var versions = map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"}

func newConfig(ca string, max string) *tls.Config {
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
	return config
}

// say runs the steps in order up to the first that fails.
func say(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func content(client *smtp.Client, mail []byte) error {
	data, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := data.Write(mail); err != nil {
		return err
	}
	return data.Close()
}

func send(address string, config *tls.Config, mail []byte) (*result, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	client, err := smtp.NewClient(connection, "localhost")
	if err != nil {
		return nil, err
	}
	defer client.Close()
	err = say(
		func() error { return client.Hello("client.example") },
		func() error { return client.StartTLS(config) },
		func() error { return client.Mail("a@b.example") },
		func() error { return client.Rcpt("c@d.example") },
		func() error { return content(client, mail) },
	)
	if err != nil {
		return nil, err
	}
	state, _ := client.TLSConnectionState()
	return &result{versions[state.Version], state.DidResume}, client.Quit()
}

func main() {
	ca := flag.String("ca", "", "")
	max := flag.String("max", "1.3", "")
	count := flag.Int("count", 1, "")
	flag.Parse()
	mail, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	config := newConfig(*ca, *max)
	for i := 0; i < *count; i++ {
		r, err := send(flag.Arg(0), config, mail)
		if err != nil {
			log.Fatal(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
			log.Fatal(err)
		}
	}
}
