package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"
)

// describing is a queue that says of each job that it is there.
type describing struct{ Queue }

func (describing) Describe(_ context.Context, ids []int64) (map[int64]string, error) {
	about := make(map[int64]string, len(ids))
	for _, id := range ids {
		about[id] = "deliver"
	}
	return about, nil
}

// Whatever is sent to the queue's buttons, it is refused as the caller's mistake, or what is written down is just what is passed on:
// as many jobs, in the one way that their numbers are written, and a second reading gives the same.
func FuzzQueueChange(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"ids":null}`, `{"ids":[]}`, `{"ids":["1","2"]}`, `{"ids":[1]}`, `{"ids":["+1"]}`, `{"ids":["01","-5","1"]}`, `{"ids":["9223372036854775808"]}`,
		`{"ids":["1"],"ids":["2"]}`, `{"IDS":["1"]}`, `{"ids":["1"],"x":1}`, `{"ids":["1"]}{"ids":["2"]}`, "{\"ids\":[\"\xff\"]}", `{"ids":["１"]}`,
	} {
		f.Add(http.MethodPost, "jobs/cancel", []byte(seed))
	}
	for _, path := range []string{"queues/default/pause", "queues//resume", "queues/a\x00/pause", "queues/" + strings.Repeat("x", 129) + "/pause", "queues/é/resume", "queues/\xff/pause", "jobs/1/cancel"} {
		f.Add(http.MethodPut, path, []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		s := &server{deps: Deps{Queue: describing{}}}
		change, passedOn, err := pressedAs(s, method, path, string(body))
		if err != nil {
			refusedAsTheCallers(t, err)
			return
		}
		if len(change.subjects) == 0 || len(change.subjects) > maxQueueJobs || !strings.HasPrefix(change.action, "queue.") {
			t.Fatalf("%s %q %q is written down as %+v", method, path, body, change)
		}
		if strings.HasPrefix(path, "queues/") {
			if name := strings.TrimPrefix(change.subjects[0], "queue "); len(change.subjects) != 1 || !strings.Contains(path, "/"+name+"/") || passedOn != "" || !isQueueName(name) {
				t.Fatalf("%s %q is written down as %+v, with the body %q", method, path, change, passedOn)
			}
			return
		}
		var sent struct {
			IDs []string `json:"ids"`
		}
		if err := json.Unmarshal([]byte(passedOn), &sent, json.RejectUnknownMembers(true)); err != nil || len(sent.IDs) != len(change.subjects) {
			t.Fatalf("%q is written down as %q, passed on as %q: %v", body, change.subjects, passedOn, err)
		}
		for i, id := range sent.IDs {
			n, err := strconv.ParseInt(id, 10, 64)
			if err != nil || strconv.FormatInt(n, 10) != id || change.subjects[i] != "job "+id+" deliver" {
				t.Fatalf("%q is written down as %q, passed on as %q", body, change.subjects, passedOn)
			}
		}
		if second, again, err := pressedAs(s, method, path, passedOn); err != nil || again != passedOn || len(second.subjects) != len(change.subjects) {
			t.Fatalf("%q is passed on as %q, that as %q: %v", body, passedOn, again, err)
		}
	})
}

// pressedAs is how one press is read, and the body that is passed on of it.
func pressedAs(s *server, method, path, body string) (change queueChange, passedOn string, err error) {
	r := httptest.NewRequest(http.MethodPost, QueuePrefix+"/", strings.NewReader(body))
	r.Method, r.URL = method, &url.URL{Path: QueuePrefix + "/api/" + path}
	c := echo.New().NewContext(r, httptest.NewRecorder())
	if change, err = s.readQueueChange(c); err != nil {
		return change, "", err
	}
	rest, err := io.ReadAll(c.Request().Body)
	return change, string(rest), err
}
