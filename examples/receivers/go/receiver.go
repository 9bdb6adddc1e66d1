// A receiver of Switchboard's webhooks, with nothing but Go's standard library (1.19 or later).
//
//	WEBHOOK_SECRET=whsec_… PORT=8080 go run receiver.go
//
// It stores each event once, as a file named after the delivery id, and answers when it is stored.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

const (
	toleranceSeconds = 300
	maxBodyBytes     = 5 << 20
)

var (
	secretForm    = regexp.MustCompile(`^whsec_\S+$`)
	timestampForm = regexp.MustCompile(`^[0-9]{1,12}$`)
	idForm        = regexp.MustCompile(`^[0-9a-f-]{36}$`)
)

// isGenuine takes the header values and the body's bytes as they came; now is in Unix seconds.
func isGenuine(secret []byte, timestamp, signature string, rawBody []byte, now int64) bool {
	if !timestampForm.MatchString(timestamp) {
		return false
	}
	signedAt, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now-signedAt > toleranceSeconds || signedAt-now > toleranceSeconds {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(rawBody)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}

// store stores an event unless it is stored already; it says whether it is new.
func store(folder, deliveryID string, rawBody []byte) (bool, error) {
	file, err := os.CreateTemp(folder, "*.tmp")
	if err != nil {
		return false, err
	}
	defer os.Remove(file.Name())
	if _, err = file.Write(rawBody); err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return false, err
	}
	// A link is made whole or not at all, and never over a file that is there.
	err = os.Link(file.Name(), filepath.Join(folder, deliveryID+".json"))
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

func main() {
	secret := []byte(os.Getenv("WEBHOOK_SECRET"))
	// The prefix alone would be a secret that everybody knows.
	if !secretForm.Match(secret) {
		log.Fatal("Set WEBHOOK_SECRET to the secret of the webhook.")
	}
	folder := os.Getenv("EVENTS_FOLDER")
	if folder == "" {
		folder = "events"
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		log.Fatal(err)
	}

	handler := func(response http.ResponseWriter, request *http.Request) {
		rawBody, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxBodyBytes))
		if err != nil {
			response.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		timestamp := request.Header.Get("X-Service-Timestamp")
		signature := request.Header.Get("X-Service-Signature")
		if !isGenuine(secret, timestamp, signature, rawBody, time.Now().Unix()) {
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		// From the signed body, not from the header, which is not signed.
		var envelope struct{ ID, Event string }
		if err := json.Unmarshal(rawBody, &envelope); err != nil || !idForm.MatchString(envelope.ID) {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		isNew, err := store(folder, envelope.ID, rawBody)
		if err != nil {
			log.Print(err)
			// Not stored: a 5xx asks for the next try.
			response.WriteHeader(http.StatusInternalServerError)
			return
		}
		outcome := "seen before"
		if isNew {
			outcome = "stored"
		}
		fmt.Println(outcome, envelope.Event, envelope.ID)
		response.WriteHeader(http.StatusNoContent)
	}

	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(handler)))
}
