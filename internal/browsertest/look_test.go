package browsertest

import (
	"bytes"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// screenshotsVariable names the folder where pictures of pages are kept for people to look at; unset: they are not made.
const screenshotsVariable = "SCREENSHOTS"

// shot keeps a picture of the whole page.
func (b *tab) shot(name string) {
	b.t.Helper()
	if folder := os.Getenv(screenshotsVariable); folder != "" {
		b.picture(filepath.Join(folder, name+".png"))
	}
}

func (b *tab) picture(file string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, smaller(b.t, run(b, chromedp.FullScreenshot(100))), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// smaller packs a picture as tightly as PNG can.
func smaller(t testing.TB, picture []byte) []byte {
	t.Helper()
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, decoded); err != nil {
		t.Fatal(err)
	}
	if out.Len() < len(picture) {
		return out.Bytes()
	}
	return picture
}

// wantNoSidewaysScroll fails the test if a person has to scroll the page sideways to read it.
func (b *tab) wantNoSidewaysScroll() {
	b.t.Helper()
	if wide := eval[[]string](b, `(() => {
		const width = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= width) return [];
		const scrolls = (e) => e !== null && e !== document.documentElement && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
		return ["scrollWidth " + document.documentElement.scrollWidth + " of " + width].concat([...document.querySelectorAll("body *")]
			.filter((e) => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement))
			.slice(0, 5).map((e) => e.outerHTML.slice(0, 150)));
	})()`); len(wide) > 0 {
		b.t.Errorf("%s is wider than its window:\n%s", b.path(), strings.Join(wide, "\n"))
	}
}

// print gives the pages of the paper that the page comes out on, as text.
func (b *tab) print() (pages []string) {
	b.t.Helper()
	program, err := exec.LookPath("pdftotext")
	if err != nil {
		b.t.Fatal("there is no pdftotext in PATH: install it (Debian: apt-get install poppler-utils)")
	}
	paper := run(b, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
	file := filepath.Join(b.t.TempDir(), "page.pdf")
	if err := os.WriteFile(file, paper, 0o600); err != nil {
		b.t.Fatal(err)
	}
	if folder := os.Getenv(screenshotsVariable); folder != "" {
		name := strings.Trim(strings.ReplaceAll(b.t.Name(), "/", "-"), "-") + ".pdf"
		if err := keep(filepath.Join(folder, name), paper); err != nil {
			b.t.Fatal(err)
		}
	}
	text, err := exec.CommandContext(b.t.Context(), program, "-layout", "-enc", "UTF-8", file, "-").Output()
	if err != nil {
		b.t.Fatalf("pdftotext: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\f"), "\f")
}
