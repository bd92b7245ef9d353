package app

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func TestProfilesAreServedOnlyWhereOnlyThisMachineReads(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{":6060", "0.0.0.0:6060", "10.0.0.1:6060", "example.com:6060", "127.0.0.1"} {
		err := DebugConfig{Listen: listen}.check("ERP_")
		if err == nil || !strings.Contains(err.Error(), "ERP_DEBUG_LISTEN") {
			t.Errorf("%q: %v", listen, err)
		}
	}
	if err := (DebugConfig{}).check("ERP_"); err != nil {
		t.Error(err)
	}
}

func TestProfilesAreServedUntilTheServiceEnds(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	config := DebugConfig{Listen: "127.0.0.1:0"}
	if err := config.check("ERP_"); err != nil {
		t.Fatal(err)
	}
	closeIt, err := config.listen(t.Context(), slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`debug_address=(\S+)`).FindStringSubmatch(said.String())
	if address == nil {
		t.Fatalf("no address in %q", said.String())
	}
	profile := "http://" + address[1] + "/debug/pprof/goroutine?debug=1"
	response, err := http.Get(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), "goroutine profile:") {
		t.Errorf("%.200s, %v", text, err)
	}
	closeIt()
	http.DefaultClient.CloseIdleConnections()
	if response, err := http.Get(profile); err == nil {
		response.Body.Close()
		t.Error("still served")
	}
}

func TestTheQueueMayHaveAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	const database, direct = "postgres://pooler/erp", "postgres://server/erp"
	if got := (QueueConfig{}).url(database); got != database {
		t.Error(got)
	}
	if got := (QueueConfig{DatabaseURL: direct}).url(database); got != direct {
		t.Error(got)
	}
	err := QueueConfig{DatabaseURL: "postgres://%"}.check("CRM_")
	if err == nil || !strings.Contains(err.Error(), "CRM_QUEUE_DATABASE_URL") {
		t.Error(err)
	}
}
