package browsertest

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		b.picture(filepath.Join(folder, name+".png"), func(whole image.Image) image.Image { return whole })
	}
}

func (b *tab) picture(file string, part func(image.Image) image.Image) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, smaller(b.t, run(b, chromedp.FullScreenshot(100)), part), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// manualHeight is how much of a page the manual shows, in pixels.
const manualHeight = 1400

// top is the upper part of a picture.
func top(picture image.Image) image.Image {
	part, ok := picture.(interface {
		SubImage(r image.Rectangle) image.Image
	})
	if !ok {
		return picture
	}
	area := picture.Bounds()
	area.Max.Y = min(area.Max.Y, manualHeight)
	return part.SubImage(area)
}

// paletted draws a picture with the 256 colours that it has most of. A page has few others, and they are near these.
func paletted(picture image.Image) image.Image {
	count := map[color.RGBA]int{}
	area := picture.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA) }
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	var colours color.Palette
	for _, c := range most[:min(len(most), 256)] {
		colours = append(colours, c)
	}
	index := map[color.RGBA]uint8{}
	for _, c := range most {
		index[c] = uint8(colours.Index(c))
	}
	out := image.NewPaletted(area, colours)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	return out
}

// smaller packs a picture as tightly as PNG can.
func smaller(t testing.TB, picture []byte, part func(image.Image) image.Image) []byte {
	t.Helper()
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, paletted(part(decoded))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
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
