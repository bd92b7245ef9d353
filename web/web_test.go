package web

import (
	"bytes"
	"html/template"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryPageOfTheListsCanBeWritten(t *testing.T) {
	t.Parallel()
	pages, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range allPages() {
		var out bytes.Buffer
		if err := pages.Write(&out, page); err != nil {
			t.Errorf("%T: %v", page, err)
		}
		if !strings.HasPrefix(out.String(), "<!doctype html>") || !strings.HasSuffix(strings.TrimSpace(out.String()), "</html>") {
			t.Errorf("%T is not a whole page", page)
		}
	}
}

type unregistered struct{ Layout Layout }

func (unregistered) Template() string { return "unregistered" }

func TestPageOutsideTheListsIsAnErrorAndNoEmptyPage(t *testing.T) {
	t.Parallel()
	pages, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := pages.Write(&out, unregistered{}); err == nil || out.Len() > 0 {
		t.Errorf("got %v and %q", err, out.String())
	}
}

// TestMissingFieldIsFoundWhereverItStands shows that the trial at the start reaches all branches of a template.
func TestMissingFieldIsFoundWhereverItStands(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{{.Missing}}`,
		`{{if .Lead}}{{.Missing}}{{end}}`,
		`{{if .Lead}}{{else}}{{.Missing}}{{end}}`,
		`{{range .Facts}}{{.Missing}}{{end}}`,
		`{{range .Facts}}{{if .Text}}{{else}}{{.Missing}}{{end}}{{end}}`,
		`{{range .Facts}}{{else}}{{.Missing}}{{end}}`,
		`{{with .Layout.User}}{{.Missing}}{{end}}`,
		`{{with .Layout.User}}{{if .Tenant}}{{else}}{{.Missing}}{{end}}{{end}}`,
		`{{if .Lead}}{{else}}{{range .Links}}{{.Missing}}{{end}}{{end}}`,
	} {
		if err := try(template.Must(template.New("").Parse(text)), Home{}); err == nil || !strings.Contains(err.Error(), "Missing") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if err := try(template.Must(template.New("").Parse(`{{range .Facts}}{{.Text}}{{end}}`)), Home{}); err != nil {
		t.Error(err)
	}
}

func TestStaticFilesAreLinkedByTheirContent(t *testing.T) {
	t.Parallel()
	pages, err := New()
	if err != nil {
		t.Fatal(err)
	}
	address, err := pages.assets.address("style.css")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(address, "/static/")
	content, contentType, ok := pages.Asset(name)
	if !ok || contentType != "text/css; charset=utf-8" || hashedName("style.css", content) != name {
		t.Errorf("%s: found %v, type %q", address, ok, contentType)
	}
	if hashedName("style.css", append(content, ' ')) == name {
		t.Error("another content has the same name")
	}
	for _, wrong := range []string{"style.css", "", "../web.go", name + "x"} {
		if _, _, ok := pages.Asset(wrong); ok {
			t.Errorf("%q is served", wrong)
		}
	}
	if _, err := pages.assets.address("unheard-of.css"); err == nil {
		t.Error("a link to a file that is not there is no error")
	}
}

func TestMoneyIsGroupedWithoutChangingItsText(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string][]string{
		"0.00": {"0.00"}, "1234.50": {"1234.50"}, "12345.60": {"12", "345.60"}, "123456.789": {"123", "456.789"},
		"1234567": {"1", "234", "567"}, "-1234.50": {"-1234.50"}, "-12345.60": {"-12", "345.60"},
		"-123456.00": {"-123", "456.00"}, "": {""}, "not a number at all": {"n", "ot ", "a n", "umb", "er ", "at ", "all"},
	} {
		got := Money{Amount: amount}.Groups()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", amount, diff)
		}
		if strings.Join(got, "") != amount {
			t.Errorf("%s became %q", amount, strings.Join(got, ""))
		}
	}
}

func TestDurationsAreSaidInTwoUnitsAtMost(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 350 * time.Millisecond: "350 ms", time.Second: "1 s", 4250 * time.Millisecond: "4.2 s", 59 * time.Second: "59 s",
		time.Minute: "1 min", 725 * time.Second: "12 min 5 s", 200 * time.Minute: "3 h 20 min", 24 * time.Hour: "1 d",
		122*time.Hour + 59*time.Minute: "5 d 2 h", -90 * time.Second: "–1 min 30 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestTimeKeepsTheExactValue(t *testing.T) {
	t.Parallel()
	at := At(time.Date(2026, 3, 2, 10, 0, 0, 123456000, time.FixedZone("", 3600)))
	if at.Machine() != "2026-03-02T09:00:00.123456Z" || at.Exact() != "2026-03-02 09:00:00.123456 UTC" || at.Text() != "2 Mar 2026, 09:00:00 UTC" {
		t.Errorf("got %s, %s, %s", at.Machine(), at.Exact(), at.Text())
	}
	if AtPtr(nil).Missing() != "–" || (Time{Empty: "never"}).Missing() != "never" {
		t.Error("a missing time is not told")
	}
}

func TestPlotStandsOnItsAxisAndHoldsEveryValue(t *testing.T) {
	t.Parallel()
	at := func(hour int) Time { return At(time.Date(2026, 3, 2, hour, 0, 0, 0, time.UTC)) }
	p := NewPlot("d", "Deliveries", "deliveries", []PlotSeries{{"succeeded", ToneGood}, {"failed", ToneBad}},
		[]PlotBar{{From: at(10), Values: []int{3, 1}}, {From: at(11), Values: []int{0, 0}}, {From: at(12), Values: []int{7, 0}}})
	if p.Total != 11 || len(p.Bars[0].Parts) != 2 || len(p.Bars[1].Parts) != 0 || len(p.Bars[2].Parts) != 1 {
		t.Errorf("got %+v", p)
	}
	// 8 is the highest line; the bar of 7 begins an eighth below the top and ends on the axis.
	if got := p.Bars[2].Parts[0]; got.Y != "35.0" || got.Height != "133.0" || got.About != "12:00 UTC: 7 succeeded" {
		t.Errorf("got %+v", got)
	}
	if p.Ticks[0].Y != "168.0" || p.Ticks[len(p.Ticks)-1].Y != "16.0" {
		t.Errorf("ticks: %+v", p.Ticks)
	}
	if empty := NewPlot("e", "Nothing", "deliveries", nil, nil); empty.Total != 0 || len(empty.Ticks) == 0 {
		t.Errorf("got %+v", empty)
	}
}
