package web

import (
	"fmt"
	"strconv"
)

// Plot is a bar chart over time, drawn as SVG without a script, with the same figures as a table below it. Times stand in UTC,
// and say so, until a script has them in the viewer's zone.
// Template: {{template "plot" .Plot}}. Make it by NewPlot.
type Plot struct {
	ID     string // unique on its page
	Title  string
	Unit   string // what is counted: "deliveries"
	Series []PlotSeries
	Bars   []PlotBar
	Ticks  []PlotTick
	Labels []PlotLabel
	Width  int
	Height int
	Total  int
	Left   int // where lines begin, and end
	Right  int
	Below  int // where the labels stand
}

// PlotSeries is one kind of thing counted; its bars stand on the ones before.
type PlotSeries struct {
	Name string
	Tone Tone
}

// PlotBar is one stretch of time.
type PlotBar struct {
	From   Time  // when it begins
	Values []int // one for each series
	Parts  []PlotPart
}

// PlotPart is one rectangle of a bar.
type PlotPart struct {
	Tone                Tone
	X, Y, Width, Height string
	About               string // told on hover
}

// PlotTick is a line across the plot at a round number.
type PlotTick struct {
	Y, TextY string
	Text     string
}

// PlotLabel is the text below a bar; not every bar has one.
type PlotLabel struct {
	X     string
	Time  Time
	Minor bool // left out where there is little room
}

const (
	plotWidth, plotHeight = 960, 200
	plotLeft, plotRight   = 64, 8
	plotTop, plotBottom   = 16, 32
	plotLabels            = 8 // at most
)

// NewPlot lays a plot out. Every bar has one value for each series.
func NewPlot(id, title, unit string, series []PlotSeries, bars []PlotBar) Plot {
	p := Plot{ID: id, Title: title, Unit: unit, Series: series, Width: plotWidth, Height: plotHeight, Left: plotLeft, Right: plotWidth - plotRight, Below: plotHeight - 6}
	highest := 0
	for _, bar := range bars {
		sum := 0
		for _, v := range bar.Values {
			sum += v
		}
		p.Total += sum
		highest = max(highest, sum)
	}
	step := plotStep(highest)
	top := max(step, (highest+step-1)/step*step)
	inner := float64(plotHeight - plotTop - plotBottom)
	y := func(value int) float64 { return plotTop + inner*(1-float64(value)/float64(top)) }
	for value := 0; value <= top; value += step {
		p.Ticks = append(p.Ticks, PlotTick{Y: px(y(value)), TextY: px(y(value) + 5), Text: strconv.Itoa(value)})
	}
	if len(bars) == 0 {
		return p
	}
	pitch := float64(plotWidth-plotLeft-plotRight) / float64(len(bars))
	every := (len(bars) + plotLabels - 1) / plotLabels
	for i, bar := range bars {
		left := plotLeft + pitch*float64(i)
		bar.Parts = plotParts(bar, series, left+pitch*.12, pitch*.76, y)
		p.Bars = append(p.Bars, bar)
		if i%every == 0 {
			p.Labels = append(p.Labels, PlotLabel{X: px(left + pitch/2), Time: bar.From, Minor: i/every%2 == 1})
		}
	}
	return p
}

func plotParts(bar PlotBar, series []PlotSeries, x, width float64, y func(int) float64) (parts []PlotPart) {
	below := 0
	for i, value := range bar.Values {
		if value <= 0 || i >= len(series) {
			continue
		}
		parts = append(parts, PlotPart{
			Tone: series[i].Tone, X: px(x), Y: px(y(below + value)), Width: px(width), Height: px(y(below) - y(below+value)),
			About: fmt.Sprintf("%s UTC: %d %s", bar.From.Clock(), value, series[i].Name),
		})
		below += value
	}
	return parts
}

// plotStep is the distance of lines: 1, 2 or 5 times a power of ten, so that there are two to five lines.
func plotStep(highest int) int {
	for power := 1; ; power *= 10 {
		for _, step := range []int{1, 2, 5} {
			if highest <= step*power*4 {
				return step * power
			}
		}
	}
}

func px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
