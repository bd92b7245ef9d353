package bench

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/fleet"
)

// wanted are the figures that every run has, besides those of a PgBouncer that may not be installed.
var wanted = []string{
	"create_64_clients", "create_one_tenant", "create_1_client", "replay", "deliveries_to_queue", "deliveries_to_create", "bulk_submit",
	"create_p99_at_half_rate", "order_to_invoice_p50", "order_to_invoice_p99", "overload_throughput", "overload_excess_told_so",
	"overload_503_p99", "overload_memory", "overload_idle_right_after", "create_during_reconciliation", "replicas_2", "replicas_4",
	"create_at_5_million", "replay_at_5_million", "create_during_purge",
}

// TestEveryFigureHasAValue measures so little that the values mean nothing.
func TestEveryFigureHasAValue(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs and starts a server of its own")
	}
	programs, err := fleet.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	report, err := Run(t.Context(), Config{Programs: programs.Dir, Smoke: true, Progress: &progress})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Failed {
		t.Errorf("%s: %v", f.Part, f.Err)
	}
	var out bytes.Buffer
	if err := report.Write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var told struct {
		Figures []map[string]any `json:"figures"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &told); err != nil {
		t.Fatalf("the last line is %q: %v", lines[len(lines)-1], err)
	}
	has := map[string]bool{}
	for _, f := range told.Figures {
		name, _ := f["name"].(string)
		has[name] = true
		for _, member := range []string{"ratio", "min", "max", "goal"} {
			value, number := f[member].(float64)
			// All excess that is refused may be refused otherwise than by 503, on a machine this busy.
			if !number || math.IsNaN(value) || value < 0 || value == 0 && member != "goal" && name != "overload_excess_told_so" {
				t.Errorf("%s of %s is %v", member, name, f[member])
			}
		}
	}
	for _, name := range wanted {
		if !has[name] {
			t.Errorf("there is no figure %s", name)
		}
	}
	if t.Failed() {
		t.Log(progress.String())
	}
}

func TestARatioIsTheMedianOfItsRounds(t *testing.T) {
	t.Parallel()
	this := Series{All: []float64{10, 30, 20}}
	f := newFigure("f", 2, this, Series{All: []float64{10, 10, 10}})
	if f.Ratio != 2 || f.Min != 1 || f.Max != 3 || !f.Met() {
		t.Errorf("%+v", f)
	}
	f = inverse("f", 2.1, Series{All: []float64{10, 20, 40}}, Series{All: []float64{40, 40, 40}})
	if f.Ratio != 2 || f.Min != 1 || f.Max != 4 || f.Met() {
		t.Errorf("of times less is better: %+v", f)
	}
}

func TestTablesGoBetweenTheirMarkers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "performance.md")
	r := Report{Begun: time.Unix(0, 0), Machine: "machine", Server: "server"}
	if err := os.WriteFile(path, []byte("no markers"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteInto(path); err == nil {
		t.Error("written where there is no place for it")
	}
	if err := os.WriteFile(path, []byte("before\n"+markdownBegin+"\nold\n"+markdownEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second run finds the first one's
		if err := r.WriteInto(path); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); strings.Contains(got, "old") || strings.Count(got, "machine") != 1 ||
		!strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "\nafter\n") {
		t.Errorf("%s", got)
	}
}

func TestTemplateReplacesAllOfItsParts(t *testing.T) {
	t.Parallel()
	got, err := template(`a'KEYbKEYcID`, map[string]string{"KEY": "key", "ID": "id"})
	if diff := cmp.Diff(`'a''' || key || 'b' || key || 'c' || id`, got); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	if _, err := template("a", map[string]string{"KEY": "key"}); err == nil {
		t.Error("a part that is not there")
	}
}

func TestUnknownPartIsRefusedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), Config{Only: []string{"nonsense"}}); err == nil || !strings.Contains(err.Error(), "create") {
		t.Error(err)
	}
}
